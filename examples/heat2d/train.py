"""Train a surrogate of the heat equation, which maps the parameters and the time to the temperature field.

An ordinary DistributedDataParallel script with the stream as its dataset. Writes loss.png into the run folder.
"""

import os
from pathlib import Path

import matplotlib
import torch
import torch.distributed as dist
from matplotlib.figure import Figure
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

import mpidata

matplotlib.use("Agg")
LOW = torch.tensor([0.01, 100, 100, 100, 100, 100, 0.0])  # alpha, five temperatures and the time
HIGH = torch.tensor([0.1, 500, 500, 500, 500, 500, 0.5])
Sample = dict[str, torch.Tensor]


def inputs(batch: Sample) -> torch.Tensor:
    """Return parameters and time, each scaled to -1 to 1: (B, 7)."""
    values = torch.cat([batch["parameters"], batch["time"][:, None]], dim=1).float()
    return 2 * (values - LOW) / (HIGH - LOW) - 1


def targets(batch: Sample) -> torch.Tensor:
    """Return temperatures, scaled to about -2 to 2: (B, 4096)."""
    return (batch["temperature"].flatten(1) - 300) / 100


def evaluate(model: nn.Module, validation: Dataset[Sample]) -> float:
    """Return the mean squared error over the validation samples of all trainers."""
    total = torch.zeros(2, dtype=torch.float64)
    with torch.no_grad():
        for batch in DataLoader(validation, batch_size=100):
            errors = (model(inputs(batch)) - targets(batch)) ** 2
            total += torch.tensor([errors.sum(), errors.numel()])
    dist.all_reduce(total)
    return float(total[0] / total[1])


def plot(path: Path, losses: dict[str, list[tuple[int, float]]], model: nn.Module, sample: Sample) -> Figure:
    """Draw the loss curves and, for one validation sample, the true and predicted fields and their difference."""
    from matplotlib import pyplot

    with torch.no_grad():
        output = model(inputs({name: value[None] for name, value in sample.items()}))
    true, predicted = sample["temperature"].numpy(), 300 + 100 * output.reshape(64, 64).numpy()
    figure, axes = pyplot.subplots(1, 4, figsize=(18, 4), layout="constrained")
    for name, curve in losses.items():
        if curve:
            axes[0].semilogy(*zip(*curve, strict=True), label=name)
    axes[0].set(title="mean squared error", xlabel="batches of each trainer")
    axes[0].legend()
    scale = {"vmin": float(true.min()), "vmax": float(true.max())}
    fields = [
        ("true temperature", true, scale),
        ("predicted", predicted, scale),
        ("predicted - true", predicted - true, {}),
    ]
    for axis, (title, field, options) in zip(axes[1:], fields, strict=True):
        figure.colorbar(axis.imshow(field, origin="lower", extent=(0, 1, 0, 1), **options), ax=axis)
        axis.set_title(title)
    figure.savefig(path)
    return figure


def main() -> None:
    mpidata.init_process_group()
    torch.manual_seed(0)
    stream = mpidata.MPIStreamDataset(batch_size=16)
    layers = [nn.Linear(7, 256), nn.SiLU(), nn.Linear(256, 256), nn.SiLU(), nn.Linear(256, 256), nn.SiLU()]
    model = DistributedDataParallel(nn.Sequential(*layers, nn.Linear(256, 64 * 64)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss_function = nn.MSELoss()
    stream.register(model=model, optimizer=optimizer)  # saved in checkpoints and restored when a run is resumed

    validation = stream.validation()
    losses: dict[str, list[tuple[int, float]]] = {"training": [], "validation": []}

    def report(batches: int) -> None:
        validation_loss = evaluate(model, validation)
        losses["validation"].append((batches, validation_loss))
        if dist.get_rank() == 0:
            stream.report(validation_loss=validation_loss)
            print(f"batch {batches}: validation loss {validation_loss:.5f}", flush=True)

    batches = stream.resumed
    report(batches)  # before any training, or from an earlier run's checkpoint
    for batches, batch in enumerate(stream, start=stream.resumed + 1):
        loss = loss_function(model(inputs(batch)), targets(batch))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if batches % 10 == 1:
            losses["training"].append((batches, loss.item()))
            stream.report(training_loss=loss)
        if batches % 50 == 0:
            report(batches)
    report(batches)
    if dist.get_rank() == 0:  # plot the middle of the first validation simulation
        figure = plot(Path(os.environ["MPIDATA_RUN"]) / "loss.png", losses, model, validation[len(validation) // 20])
        stream.picture("prediction", figure)  # into the report


if __name__ == "__main__":
    main()
