"""Train a DeepSets network that maps a set of particles of any size to their kinetic energy in the next step.

The network is applied to each particle, and its outputs are summed over the particles of each sample
(https://arxiv.org/abs/1703.06114), so that neither their number nor their order matters. Writes prediction.png into the
run folder.
"""

from __future__ import annotations

import os
from pathlib import Path

import matplotlib
import torch
from torch import nn

import mpidata

matplotlib.use("Agg")
Sample = dict[str, torch.Tensor]


class DeepSets(nn.Module):
    """Returns one number per sample of a batch: (B,)."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.each = nn.Sequential(
            nn.Linear(5, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1)
        )

    def forward(self, batch: Sample) -> torch.Tensor:
        gravity = batch["parameters"][:, 2:].float().repeat_interleave(batch["particles"], dim=0)
        each = self.each(torch.cat([batch["state"], gravity], 1))[:, 0]
        return torch.segment_reduce(each, "sum", offsets=batch["particles_offsets"], initial=0)


def collate(samples: list[Sample]) -> Sample:
    """Join single samples as the stream does for a batch."""
    batch = {name: torch.stack([sample[name] for sample in samples]) for name in samples[0] if name != "state"}
    batch["state"] = torch.cat([sample["state"] for sample in samples])
    batch["particles_offsets"] = nn.functional.pad(batch["particles"].cumsum(0), (1, 0))
    return batch


def plot(path: Path, batch: Sample, predicted: torch.Tensor) -> None:
    """Draw the true and predicted energies of the first simulations over time, and predicted over true energies."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(12, 4), layout="constrained")
    for simulation in batch["simulation"].unique()[:3]:
        of = batch["simulation"] == simulation
        (line,) = axes[0].plot(batch["time"][of], batch["energy_next"][of], label=f"simulation {simulation}")
        axes[0].plot(batch["time"][of], predicted[of], "x", color=line.get_color())
    axes[0].set(title="energy in the next step, and predicted (x)", xlabel="time")
    axes[0].legend()
    axes[1].plot(batch["energy_next"], batch["energy"], ".", label="if nothing changed", color="lightgray")
    axes[1].plot(batch["energy_next"], predicted, ".", label="predicted")
    axes[1].set(title="all samples for validation", xlabel="true")
    axes[1].legend()
    figure.savefig(path)


def main() -> None:
    torch.manual_seed(0)
    stream = mpidata.MPIStreamDataset(batch_size=16)
    model = DeepSets()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    stream.register(model=model, optimizer=optimizer)
    for number, batch in enumerate(stream, start=stream.resumed + 1):
        loss = nn.functional.mse_loss(model(batch), batch["energy_next"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if number % 10 == 0:
            stream.report(training_loss=loss)

    batch = collate(list(stream.validation()))
    with torch.no_grad():
        predicted = model(batch)
    error, no_change = (nn.functional.mse_loss(guess, batch["energy_next"]) for guess in (predicted, batch["energy"]))
    stream.report(validation_loss=error, no_change=no_change)
    print(f"validation loss {error:.3g}; if nothing changed it would be {no_change:.3g}", flush=True)
    plot(Path(os.environ["MPIDATA_RUN"]) / "prediction.png", batch, predicted)


if __name__ == "__main__":
    main()
