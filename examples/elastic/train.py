"""Learn the heat equation on trainers that may die: DIES_AT=150 kills the third trainer in training step 150."""

import os
import signal
from pathlib import Path

import numpy as np
import torch
from heat import simulate
from torch import nn

import mpidata

BATCH = 20


def held_out() -> tuple[torch.Tensor, torch.Tensor]:
    """Simulate validation data: inputs (alpha, time), and temperatures."""
    steps = [(alpha, time, fields["temperature"].copy())
             for alpha in np.linspace(0.06, 0.44, 16) for time, fields in simulate(alpha)]  # fmt: skip
    inputs = torch.tensor([step[:2] for step in steps], dtype=torch.float32)
    return inputs, torch.tensor(np.array([step[2] for step in steps]), dtype=torch.float32)


def main() -> None:
    dies_at = int(os.environ.get("DIES_AT", -1))
    torch.manual_seed(0)
    layers = [nn.Linear(2, 128), nn.SiLU(), nn.Linear(128, 128), nn.SiLU(), nn.Linear(128, 64)]
    stream = mpidata.MPIStreamDataset(batch_size=BATCH)
    model = mpidata.DistributedDataParallel(nn.Sequential(*layers))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    mpidata.register(model=model, optimizer=optimizer)
    mpidata.on_change(lambda change: print(f"{change.before} trainers before, {change.trainers} now", flush=True))
    inputs, temperatures = held_out()
    curve = Path(os.environ["MPIDATA_RUN"], "curve.csv").open("a")
    samples = 0
    for step, batch in enumerate(stream):
        if step == dies_at and mpidata.rank() == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        predicted = model(torch.cat([batch["parameters"], batch["time"][:, None]], 1).float())
        loss = nn.functional.mse_loss(predicted, batch["temperature"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        samples += BATCH * mpidata.world_size()
        if mpidata.rank() == 0 and step % 10 == 0:
            with torch.no_grad():
                error = nn.functional.mse_loss(model.module(inputs), temperatures).item()
            print(f"{samples},{error}", file=curve, flush=True)
            mpidata.report(error=error)


if __name__ == "__main__":
    main()
