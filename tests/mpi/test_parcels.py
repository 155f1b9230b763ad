"""Requests of trainers and parcels of loaders: of any size, from any to any, through the death of a loader."""

import pytest
import yaml
from jobs import JobFolder

ASKER = """
import json, time
import numpy as np
from mpidata.loading.transport import Closed, Joined, Lost, Parcel
from mpidata.trainer import join

trainer = join.join()
me, loaders = trainer.communicator.rank, join.loaders()
alive, waits = set(), {}

def pattern(number, size):
    return np.resize((np.arange(251) + number).astype(np.uint8), size)

def send(loader, number, dataset=5, **wanted):
    waits[number] = loader, wanted
    loaders.send(loader, dataset, 2, number, json.dumps(wanted).encode())

def take(dataset=5):
    while True:
        what = loaders.take(dataset, 30.0)
        assert what is not None and not isinstance(what, Closed), (what, waits)
        if isinstance(what, Joined):
            alive.add(what.loader)
            return what
        elif isinstance(what, Lost):
            alive.remove(what.loader)
            return what
        elif waits.get(what.number, [None])[0] == what.loader:  # else it was asked of another one meanwhile
            wanted = waits.pop(what.number)[1]
            assert (what.dataset, what.kind, what.status) == (dataset, 2, 0)
            assert json.loads(bytes(what.pickle)) == wanted and len(what.buffers) == len(wanted["sizes"])
            for i, (size, buffer) in enumerate(zip(wanted["sizes"], what.buffers)):
                assert buffer.nbytes == size and not buffer.readonly
                assert not size or np.frombuffer(buffer, np.uint8).ctypes.data % 64 == 0
                assert np.array_equal(buffer, pattern(what.number + i, size)), (what.number, i)
            return what

def until(n):
    deadline = time.monotonic() + 30
    while len(loaders.alive()) < n:
        assert time.monotonic() < deadline
        time.sleep(0.01)
"""


@pytest.fixture
def echo(tmp_path):
    """A job whose loaders answer with patterns; called with its keys and the rest of the training script."""
    folder = JobFolder(tmp_path)
    folder.write(sitecustomize="import sys\nif 'mpidata.loader' in sys.orig_argv:\n    import loaders.echo_loader\n")

    def run(script, trainers=1, timeout=60, **loaders):
        folder.write(train=ASKER + script)
        job = {"trainers": {"ranks": trainers, "program": ["python", "train.py"]}, "loaders": loaders}
        (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
        result = folder.run(timeout=timeout)
        assert result.status == 0, result.logs()
        lines = [result.log("trainer", t).splitlines() for t in range(trainers)]
        return [line[3:] for log in lines for line in log if line.startswith("=> ")]

    return run


@pytest.mark.parametrize("start", ["split", pytest.param("spawn", marks=pytest.mark.full)])
def test_parcels_come_whole_through_the_death_of_a_loader_in_the_middle_of_one(echo, start):
    script = """
until(2)
sizes = [[], [0], [1], [0, 63, 64, 65, 0], [1000] * 40, [16384, 16385, 16384], [40000] * 3 + [5] * 9]
sizes += [[1 << 20], [3, 8 << 20, 4]]
for number, wanted in enumerate(sizes):
    for loader in 0, 1:
        send(loader, 2 * number + loader, sizes=wanted)
send(me, 100, sizes=[64 << 20])
send(1 - me, 101, sizes=[], text="x" * 3_000_000)
if me == 1:  # takes nothing until the other one is through
    while not trainer.communicator.iprobe(0, 7):
        time.sleep(0.01)
    trainer.communicator.recv(source=0, tag=7)
held = []
while waits:
    held.append(take())
held = [parcel for parcel in held if isinstance(parcel, Parcel)]
assert len(held) == 2 * len(sizes) + 2
assert {parcel.loader for parcel in held} == alive == {0, 1} == loaders.alive()
del held
if me == 0:
    trainer.communicator.send(None, 1, 7)
trainer.communicator.barrier()

dying, todo, seen, lost = {11} if me == 0 else set(), list(range(30)), [], []
while todo or waits:
    while todo and len(waits) < 4 and alive:
        number = todo.pop(0)
        die = {"die": True} if number in dying else {}
        dying.discard(number)
        send(sorted(alive)[number % len(alive)], number, sizes=[2 << 20, 5, 1 << 20], **die)
    what = take()
    if isinstance(what, Parcel):
        seen.append(what.number)
    elif isinstance(what, Lost):
        lost.append(what)
        todo += [number for number, (loader, _) in waits.items() if loader == what.loader]
        waits = {number: wait for number, wait in waits.items() if number not in todo}
until(2)
while len(alive) < 2:
    take()
loaders.drop(5)
assert sorted(seen) == list(range(30)), seen
assert alive == {0, 1, 2} - {lost[0].loader} == loaders.alive()
print("=> exact", [what.at for what in lost], flush=True)
"""
    assert echo(script, trainers=2, ranks=2, spares=1, start=start) == ["exact ['number 11']"] * 2
