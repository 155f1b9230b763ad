"""Trainer: prints a hash of all samples drawn after each batch, and takes a random time for each batch.

The environment can end it early, after `STOP_AFTER` batches or, in the first start only, `FAIL_AFTER` batches.
"""

import hashlib
import os
import random
import time
from pathlib import Path

from numpy_stream import stream

from mpidata.native.waiting import wait
from mpidata.trainer.join import join

stop_after, fail_after = (int(os.environ.get(name, 0)) for name in ("STOP_AFTER", "FAIL_AFTER"))
hashes = hashlib.sha256()
for number, batch in enumerate(stream(4), start=1):
    for name in sorted(batch):
        hashes.update(batch[name].tobytes())
    time.sleep(random.choice([0, 0, 0.001, 0.02]))
    if join().communicator is not None:
        wait(join().communicator.Ibarrier())  # like DistributedDataParallel
    print("batch", number, hashes.hexdigest())
    if number == stop_after:
        break
    if number == fail_after and not Path("failed").exists():
        Path("failed").touch()
        raise SystemExit(3)
