"""Trainer: takes a number of samples each time it is its turn, and says how long that took. Argument: folder.

The solver is ahead of it by a few samples, so that a buffer with a watermark, or of windows, has what is drawn.

Alone in its file, and with no other import of the benchmarks, because it also runs in the other checkout's environment.
"""

import mmap
import struct
import sys
import time

import mpidata

BATCH = 32
STOP, LAST_STEP, TURN, DONE, SECONDS, COUNT = 1, 5, 6, 7, 8, 9
PAUSE_S = 0.5e-3
AHEAD = 2 * BATCH

with open(sys.argv[1] + "/gate", "r+b") as file:
    memory = mmap.mmap(file.fileno(), 4096)
words = memoryview(memory).cast("q")
stream = mpidata.MPIStreamDataset(batch_size=BATCH)
batches = iter(stream)
turn = 0
words[LAST_STEP] = AHEAD
while True:
    while words[TURN] == turn and not words[STOP]:
        time.sleep(PAUSE_S)
    if words[STOP]:
        break
    start = time.monotonic()
    words[LAST_STEP] += words[COUNT] * BATCH
    for _ in range(words[COUNT]):
        whole = next(batches)
        batch = whole["u"]
    seconds = time.monotonic() - start
    if "n_offsets" in whole:
        batch = batch[None, : whole["n_offsets"][1]]
    elif batch.shape[0] != BATCH:
        sys.exit("A batch has another size.")
    if batch[0, ..., 0].tolist() != batch[0, ..., -1].tolist():
        sys.exit("A batch is not what was sent.")
    struct.pack_into("d", memory, 8 * SECONDS, seconds)
    turn = words[DONE] = words[TURN]
for _ in batches:
    pass  # to the end, so that the job ends in order
