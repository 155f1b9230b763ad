"""Trainer: takes a number of samples each time it is its turn, and reports how long that took.

Arguments: FOLDER, and `fresh` to count only samples that were not drawn before. The solver is a few samples ahead, so
that a buffer with a watermark or windows has enough to draw; with `fresh` the solver sends as fast as it can.

The file imports nothing else from the benchmarks, because it also runs in the other checkout's environment.
"""

import mmap
import struct
import sys
import time

import numpy as np

import mpidata

BATCH = 32
STOP, LAST_STEP, TURN, DONE, SECONDS, COUNT = 1, 5, 6, 7, 8, 9
PAUSE_S = 0.5e-3
AHEAD = 2 * BATCH
MOST_STEPS = 1 << 30  # untouched memory costs nothing

with open(sys.argv[1] + "/gate", "r+b") as file:
    memory = mmap.mmap(file.fileno(), 4096)
words = memoryview(memory).cast("q")
stream = mpidata.MPIStreamDataset(batch_size=BATCH)
batches = iter(stream)
turn = 0
fresh = sys.argv[2:] == ["fresh"]
seen = np.zeros(MOST_STEPS, bool)


def take(count: int) -> dict:
    """Take a number of batches; return the last one."""
    words[LAST_STEP] += count * BATCH
    for _ in range(count):
        whole = next(batches)
    return whole


def take_fresh(count: int) -> dict:
    """Take batches until the number of first-time samples equals that of the given batches."""
    wanted, words[LAST_STEP] = count * BATCH, MOST_STEPS
    while wanted > 0:
        whole = next(batches)
        steps = whole["step"].numpy()
        new = np.unique(steps[~seen[steps]])
        seen[new] = True
        wanted -= len(new)
    words[LAST_STEP] = AHEAD
    return whole


words[LAST_STEP] = AHEAD
while True:
    while words[TURN] == turn and not words[STOP]:
        time.sleep(PAUSE_S)
    if words[STOP]:
        break
    start = time.monotonic()
    whole = (take_fresh if fresh else take)(words[COUNT])
    seconds = time.monotonic() - start
    batch = whole["u"]
    if "n_offsets" in whole:
        batch = batch[None, : whole["n_offsets"][1]]
    elif batch.shape[0] != BATCH:
        sys.exit("A batch has another size.")
    if batch[0, ..., 0].tolist() != batch[0, ..., -1].tolist():
        sys.exit("A batch is not what was sent.")
    struct.pack_into("d", memory, 8 * SECONDS, seconds)
    turn = words[DONE] = words[TURN]
for _ in batches:
    pass  # drain the stream so that the job ends normally
