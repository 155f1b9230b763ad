"""Trainer: trains until Ctrl-C. Arguments: `stream` or `loader`; `saves` (catch, close, save) or `ends`."""

import os
import pathlib
import sys
import time

import mpidata

what, then = sys.argv[1:]
run = pathlib.Path(os.environ["MPIDATA_RUN"])
if what == "stream":
    batches = mpidata.MPIStreamDataset(batch_size=4)
else:
    batches = mpidata.DataLoader(list(range(10**6)), batch_size=4)


def train() -> None:
    for number, _ in enumerate(batches):
        time.sleep(0.02)
        if number == 5:
            (run / f"trains-{os.environ['RANK']}").touch()


if then == "ends":
    train()
    raise SystemExit("the loop has ended without Ctrl-C")
try:
    train()
except KeyboardInterrupt:
    if what == "stream":
        print("stopped:", batches.stopped, flush=True)
        batches.close()
    time.sleep(1.0)
    (run / "saved").touch()
