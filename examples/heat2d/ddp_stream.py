import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

import mpidata

LOW = torch.tensor([0.01, 100, 100, 100, 100, 100, 0.0])
HIGH = torch.tensor([0.1, 500, 500, 500, 500, 500, 0.5])

mpidata.init_process_group()
torch.manual_seed(0)
dataset = mpidata.MPIStreamDataset()
loader = DataLoader(dataset, batch_size=16)
model = DistributedDataParallel(
    nn.Sequential(nn.Linear(7, 256), nn.SiLU(), nn.Linear(256, 256), nn.SiLU(), nn.Linear(256, 64 * 64))
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_function = nn.MSELoss()

for number, batch in enumerate(loader):
    values = torch.cat([batch["parameters"], batch["time"][:, None]], dim=1).float()
    predicted = model(2 * (values - LOW) / (HIGH - LOW) - 1)
    loss = loss_function(predicted, (batch["temperature"].flatten(1) - 300) / 100)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if number % 50 == 0 and dist.get_rank() == 0:
        print(f"batch {number}: loss {loss.item():.5f}", flush=True)
dist.destroy_process_group()
