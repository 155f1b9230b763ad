"""A training loop with one of several data sources. Arguments: folder of the measurement, source, model, record."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import nn

from benchmarks.contender import BATCH, Cell
from benchmarks.gate import Gate

IN_MEMORY = 1024  # samples
WARM_STEPS = 10
WORKERS = 2
Batch = dict[str, torch.Tensor]


def model_of(name: str, elements: int) -> nn.Module:
    """Return a model from a parameter and the time to the field."""
    width, layers = {"small": (64, 1), "medium": (512, 3)}[name]
    inner: list[nn.Module] = []
    for _ in range(layers - 1):
        inner += [nn.Linear(width, width), nn.SiLU()]
    return nn.Sequential(nn.Linear(2, width), nn.SiLU(), *inner, nn.Linear(width, elements))


def memory(elements: int) -> Iterator[Batch]:
    """Yield random batches of tensors in memory."""
    data = {"u": torch.randn(IN_MEMORY, elements), "parameters": torch.rand(IN_MEMORY, 1).double()}
    data["time"] = torch.rand(IN_MEMORY).double()
    while True:
        for chosen in torch.randperm(IN_MEMORY).split(BATCH):
            yield {name: values[chosen] for name, values in data.items()}


def stream() -> Iterator[Batch]:
    """Yield the batches of the job's solver."""
    import mpidata

    return iter(mpidata.MPIStreamDataset(batch_size=BATCH))


def recorded(folder: str) -> Iterator[Batch]:
    """Read files in random order."""
    import mpidata

    dataset = mpidata.RecordedDataset(folder)
    return iter(torch.utils.data.DataLoader(dataset, batch_size=BATCH, shuffle=True, num_workers=WORKERS))


def main() -> None:
    folder, source, model_name, record = Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
    cell = Cell.read(folder)
    gate = Gate(folder, cell.limit_s)
    torch.manual_seed(0)
    batches = {"memory": lambda: memory(cell.elements), "stream": stream, "files": lambda: recorded(record)}[source]()
    model = model_of(model_name, cell.elements)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)

    def step(batch: Batch) -> None:
        inputs = torch.cat([batch["parameters"], batch["time"][:, None]], dim=1).float()
        loss = nn.functional.mse_loss(model(inputs), batch["u"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    gate.open()
    for _ in range(WARM_STEPS):
        step(next(batches))
    count, now, start = 0, 0.0, time.monotonic()
    for batch in batches:
        step(batch)
        count += 1
        now = time.monotonic()
        if now - start >= cell.seconds:
            break
    gate.stop()
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    data_mb = {"memory": IN_MEMORY, "stream": cell.queue, "files": 0}[source] * cell.elements * 4 / 1e6
    (folder / "memory.json").write_text(json.dumps({"own_mb": peak_mb - data_mb}))
    (folder / "result.json").write_text(json.dumps({"samples": count * BATCH, "seconds": now - start}))
    if source == "stream":
        for _ in batches:
            pass  # drain the stream so that the job ends normally


if __name__ == "__main__":
    main()
