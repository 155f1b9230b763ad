"""Train a graph network that makes a time step of the heat equation on any mesh.

A batch concatenates the nodes of its graphs, and the edges name nodes of the batch, so that the graphs form one large
disconnected graph. Writes prediction.png into the run folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import matplotlib
import torch
from torch import nn

import mpidata

matplotlib.use("Agg")
Sample = dict[str, torch.Tensor]


def layers(inputs: int, outputs: int, width: int = 32) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, width), nn.SiLU(), nn.Linear(width, outputs))


class GraphNetwork(nn.Module):
    """Passes messages along the edges in both directions, and returns the change of the temperature."""

    def __init__(self, width: int = 32, rounds: int = 3) -> None:
        super().__init__()
        self.encode = layers(3, width)
        self.messages = nn.ModuleList(layers(2 * width + 3, width) for _ in range(rounds))
        self.updates = nn.ModuleList(layers(2 * width, width) for _ in range(rounds))
        self.decode = layers(width, 1)

    def forward(self, batch: Sample) -> torch.Tensor:
        alpha = batch["parameters"][..., 0].float().reshape(-1).repeat_interleave(batch["nodes"].reshape(-1))
        source, target = torch.cat([batch["edge_index"], batch["edge_index"].flip(0)], 1)
        away = 10 * (batch["xy"][source] - batch["xy"][target])
        edges = torch.cat([away, away.norm(dim=1, keepdim=True)], 1)
        nodes = self.encode(torch.stack([batch["u"], alpha, batch["inner"]], 1))
        for message, update in zip(self.messages, self.updates, strict=True):
            sent = message(torch.cat([nodes[source], nodes[target], edges], 1))
            received = torch.zeros_like(nodes).index_add(0, target, sent)
            nodes = nodes + update(torch.cat([nodes, received], 1))
        return 0.1 * self.decode(nodes)[:, 0] * batch["inner"]


def evaluate(model: nn.Module, samples: Iterable[Sample]) -> tuple[float, float]:
    """Return the mean squared error, over all nodes of all samples, of the model and of predicting no change."""
    total = torch.zeros(3, dtype=torch.float64)
    with torch.no_grad():
        for sample in samples:
            change = sample["u_next"] - sample["u"]
            total += torch.stack([((model(sample) - change) ** 2).sum(), (change**2).sum(), sample["nodes"]])
    return float(total[0] / total[2]), float(total[1] / total[2])


def plot(path: Path, model: nn.Module, sample: Sample) -> None:
    """Draw the true and the predicted temperature change of a sample in its time step."""
    from matplotlib import pyplot

    with torch.no_grad():
        predicted = model(sample).numpy()
    x, y = sample["xy"].numpy().T
    true = (sample["u_next"] - sample["u"]).numpy()
    scale = {"vmin": float(true.min()), "vmax": float(true.max())}
    drawn = [
        ("temperature", sample["u"].numpy(), {}),
        ("its true change", true, scale),
        ("its predicted change", predicted, scale),
    ]
    figure, axes = pyplot.subplots(1, 3, figsize=(15, 4), layout="constrained")
    for axis, (title, values, options) in zip(
        axes, drawn, strict=True
    ):  # the domain is convex, so these are the solver's triangles
        figure.colorbar(axis.tripcolor(x, y, values, edgecolors="white", linewidth=0.1, **options), ax=axis)
        axis.set(title=title, aspect="equal")
    figure.savefig(path)


def main() -> None:
    torch.manual_seed(0)
    stream = mpidata.MPIStreamDataset(batch_size=8)
    model = GraphNetwork()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    stream.register(model=model, optimizer=optimizer)
    for number, batch in enumerate(stream, start=stream.resumed + 1):
        loss = nn.functional.mse_loss(model(batch), batch["u_next"] - batch["u"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if number % 10 == 0:
            stream.report(training_loss=loss)

    validation = stream.validation()
    error, no_change = evaluate(model, validation)
    stream.report(validation_loss=error, no_change=no_change)
    print(f"validation loss {error:.3g}; if nothing changed it would be {no_change:.3g}", flush=True)
    plot(Path(os.environ["MPIDATA_RUN"]) / "prediction.png", model, validation[2])


if __name__ == "__main__":
    main()
