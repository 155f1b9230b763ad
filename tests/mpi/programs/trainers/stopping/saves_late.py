"""Trainer: trains on all samples, and is asked to end while it saves its model. Arguments: `stream` or `loader`;
`saves`, or `hangs` in its first start."""

import os
import pathlib
import sys
import time

import numpy_stream

import mpidata

what, then = sys.argv[1:]
run, rank = pathlib.Path(os.environ["MPIDATA_RUN"]), os.environ["RANK"]
batches = numpy_stream.stream(batch_size=4) if what == "stream" else mpidata.DataLoader(list(range(40)), batch_size=4)
print("batches", sum(1 for _ in batches), flush=True)
trained = run / f"trained-{rank}"
if not trained.exists():
    trained.touch()
    while then == "hangs" or not (run / "stop").exists():
        time.sleep(0.05)
    time.sleep(1.0)
(run / f"saved-{rank}").touch()
