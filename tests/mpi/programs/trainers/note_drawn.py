"""Slow trainer: prints each batch, and records the samples that it drew."""

import json
import os
import time

from numpy_stream import stream

from mpidata.trainer.join import join

drawn = []
for number, batch in enumerate(stream(4), start=1):
    print("batch", number, flush=True)
    drawn += [f"{s}/{t}" for s, t in zip(batch["simulation"].tolist(), batch["step"].tolist(), strict=True)]
    time.sleep(0.025)
join().close()
with open(f"drawn-{os.environ['RANK']}", "w") as file:
    json.dump(drawn, file)
