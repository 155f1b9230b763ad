"""Records each batch in book-<rank>.jsonl of the run folder: its number, a digest of its contents, its samples.

Argument, in JSON: `batch_size`; `kill`, [rank, batch, signal]: the first start kills this rank there, once the
checkpoint requested after batch `checkpoint` is complete; `losses`: the ranks of a replica that pass losses;
`validate`: also validate; `per_epoch`: batches of an epoch; `single`: the stream yields samples, which torch's
DataLoader collates; `unlike`: the only rank that asks for validation samples; `raises`: the rank that raises at batch
2; `leaves`: the rank that leaves its loop there; `statistics`: record them; `late`: the rank that is late for batches.
"""

import hashlib
import json
import os
import sys
import time
from pathlib import Path

import torch

import mpidata
from mpidata.tensors import array_of

options = json.loads(sys.argv[1])
run, rank = Path(os.environ["MPIDATA_RUN"]), int(os.environ["RANK"])
killed, at, how = options.get("kill", [-1, 0, 0])


class Counter:
    """The state of a script: its number of batches, and its rank."""

    batches = 0

    def state_dict(self):
        return {"batches": self.batches, "rank": rank}

    def load_state_dict(self, state):
        assert state["rank"] % place.size == place.rank
        self.batches = state["batches"]


def digest(tensors):
    found = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode() + array_of(tensor.contiguous()).tobytes())
    return found.hexdigest()


size, single = options["batch_size"], options.get("single")
place = mpidata.replica()
stream = mpidata.MPIStreamDataset(None if single else size, batches_per_epoch=options.get("per_epoch"))
counter = Counter()
mpidata.register(counter=counter)
assert place == stream.replica and place.number * place.size + place.rank == rank == mpidata.rank()
book = (run / f"book-{rank}.jsonl").open("a")


def statistics():
    """Return a digest of the stream's statistics of all fields."""
    keys = ("count", "mean", "std", "min", "max")
    return digest({f"{name} {key}": getattr(of, key) for name, of in stream.statistics().items() for key in keys})


def note(**line):
    print(json.dumps(line), file=book, flush=True)


note(resumed=stream.resumed, counted=counter.batches)
if options.get("validate"):
    for chosen in ({}, {"even": True}, {"share": False}):
        samples = stream.validation(**chosen)
        note(validation=[digest(samples[i]) for i in range(len(samples))], kind=str(chosen))
    sums = stream.validate(
        lambda batch: torch.stack([batch["u"].double().sum(), torch.tensor(1.0 * len(batch["u"]))]), 3
    )
    note(sums=sums.tolist())
if rank == options.get("unlike"):
    stream.validation()


def batches():
    if single:
        yield from torch.utils.data.DataLoader(stream, batch_size=size)
    elif options.get("per_epoch"):
        while not stream.over:
            yield from stream
    else:
        yield from stream


for number, batch in enumerate(batches(), stream.resumed):
    if number == 2 and rank == options.get("raises"):
        raise ValueError("this rank is not well")
    if number == 2 and rank == options.get("leaves"):
        break
    counter.batches += 1
    samples = torch.stack([batch["simulation"], batch["step"].reshape(len(batch["step"]), -1)[:, 0]], 1).tolist()
    known = statistics() if options.get("statistics") else ""
    note(batch=number, digest=digest(batch), samples=samples, statistics=known, expected=stream.expected_batches)
    if place.rank in options.get("losses", []):
        stream.losses(batch, torch.ones(len(samples)))
    batch["u"].zero_()  # a batch belongs to the script
    if number == options.get("checkpoint"):
        stream.checkpoint()
    stream.report(**{f"rank_{rank}": float(number)})
    # A checkpoint needs this rank until it is complete, so the rank continues meanwhile.
    if rank == killed and number >= at and not stream.resumed and any((run / "checkpoints").glob("[0-9]*[0-9]")):
        os.kill(os.getpid(), how)
    time.sleep(0.1 if rank == options.get("late") else options.get("pause_s", 0.0))
note(over=stream.over, stopped=stream.stopped, drawn=stream.state_dict()["batch"] // (size if single else 1))
