"""Notes each batch in book-<rank>.jsonl of the run folder: its number, a digest of all that is in it, its samples.

Its argument, JSON: `batch_size`; `kill`, [rank, batch, signal]: in the first start this rank is killed there, once the
checkpoint that was asked for after batch `checkpoint` is whole; `losses`: by which ranks of a replica they are told;
`validate`: it also validates. It reports, and cancels nothing.
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
    """What a script keeps: how many batches it has had, other for each rank."""

    batches = 0

    def state_dict(self):
        return {"batches": self.batches, "rank": rank}

    def load_state_dict(self, state):
        assert state["rank"] == rank
        self.batches = state["batches"]


def digest(tensors):
    found = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode() + array_of(tensor.contiguous()).tobytes())
    return found.hexdigest()


stream = mpidata.MPIStreamDataset(batch_size=options["batch_size"])
counter = Counter()
mpidata.register(counter=counter)
place = stream.replica
assert place == mpidata.replica() and place.number * place.size + place.rank == rank == mpidata.rank()
book = (run / f"book-{rank}.jsonl").open("a")


def note(**line):
    print(json.dumps(line), file=book, flush=True)


note(resumed=stream.resumed, counted=counter.batches)
if options.get("validate"):
    for chosen in ({}, {"even": True}, {"share": False}):
        samples = stream.validation(**chosen)
        note(validation=[digest(samples[i]) for i in range(len(samples))], kind=str(chosen))
    sums = stream.validate(lambda batch: torch.stack([batch["u"].double().sum(), torch.tensor(1.0 * len(batch["u"]))]), 3)
    note(sums=sums.tolist())
for number, batch in enumerate(stream, stream.resumed):
    counter.batches += 1
    samples = torch.stack([batch["simulation"], batch["step"].reshape(len(batch["step"]), -1)[:, 0]], 1).tolist()
    known = digest({f"{name} {key}": getattr(of, key) for name, of in stream.statistics().items() for key in ("count", "mean", "std", "min", "max")}) if options.get("statistics") else ""  # fmt: skip
    note(batch=number, digest=digest(batch), samples=samples, statistics=known, expected=stream.expected_batches)
    if place.rank in options.get("losses", []):
        stream.losses(batch, torch.ones(len(samples)))
    batch["u"].zero_()  # a batch is the script's own
    if number == options.get("checkpoint"):
        stream.checkpoint()
    stream.report(**{f"rank_{rank}": float(number)})
    if rank == killed and number >= at and not stream.resumed:
        while not any((run / "checkpoints").glob("[0-9]*[0-9]")):
            time.sleep(0.01)
        os.kill(os.getpid(), how)
    time.sleep(options.get("pause_s", 0.0))
note(over=stream.over, stopped=stream.stopped, drawn=stream.state_dict()["batch"])
