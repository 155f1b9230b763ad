"""Learn the rod with a network whose layers are split over the ranks of a replica (tensor parallelism)."""

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import mpidata


class Rod(nn.Module):
    """Maps alpha, the left end's temperature and the time to temperatures, which are proportional to the second."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 128), nn.SiLU(), nn.Linear(128, 32))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs[:, 1:2] * self.net(inputs)


def main() -> None:
    mpidata.init_process_group()
    replica = mpidata.replica()
    mesh = init_device_mesh("cpu", (replica.count, replica.size), mesh_dim_names=("dp", "tp"))
    torch.manual_seed(0)
    model = Rod()
    parallelize_module(model, mesh["tp"], {"net.0": ColwiseParallel(), "net.2": RowwiseParallel()})
    fully_shard(model, mesh=mesh["dp"])  # averages the gradients over the replicas
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    stream = mpidata.MPIStreamDataset(batch_size=16)  # the ranks of a replica get the same batches
    mpidata.register(model=model, optimizer=optimizer)
    for batch in stream:
        inputs = torch.cat([batch["parameters"], batch["step"][:, None] / 100], dim=1).float()
        loss = nn.functional.mse_loss(model(inputs), batch["u"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if mpidata.rank() == 0:
            stream.report(loss=loss)


if __name__ == "__main__":
    main()
