"""One of two trainers: requests parcels of many sizes from echo_loader.py, also while a loader dies in one of them."""

import json
import time

import numpy as np

from mpidata.loading.transport import Closed, Joined, Lost, Parcel
from mpidata.native import constants
from mpidata.trainer import join

DATASET, KIND = 5, 2
trainer = join.join()
me, loaders = trainer.communicator.rank, join.loaders()
alive, waits = set(), {}  # loaders; by request number: the loader asked, and the request


def pattern(number: int, size: int) -> np.ndarray:
    return np.resize((np.arange(251) + number).astype(np.uint8), size)


def send(loader: int, number: int, **wanted: object) -> None:
    waits[number] = loader, wanted
    loaders.send(loader, DATASET, KIND, number, json.dumps(wanted).encode())


def take() -> Parcel | Joined | Lost:
    while True:
        what = loaders.take(DATASET, 30.0)
        assert what is not None and not isinstance(what, Closed), (what, waits)
        if isinstance(what, Joined):
            alive.add(what.loader)
            return what
        if isinstance(what, Lost):
            alive.remove(what.loader)
            return what
        if waits.get(what.number, [None])[0] == what.loader:  # else another loader has been asked meanwhile
            check(what, waits.pop(what.number)[1])
            return what


def check(parcel: Parcel, wanted: dict) -> None:
    assert (parcel.dataset, parcel.kind, parcel.status) == (DATASET, KIND, 0)
    assert json.loads(bytes(parcel.pickle)) == wanted and len(parcel.buffers) == len(wanted["sizes"])
    for i, (size, buffer) in enumerate(zip(wanted["sizes"], parcel.buffers, strict=True)):
        assert buffer.nbytes == size and not buffer.readonly
        assert not size or np.frombuffer(buffer, np.uint8).ctypes.data % 64 == 0
        assert np.array_equal(buffer, pattern(parcel.number + i, size)), (parcel.number, i)


def wait_for_loaders(n: int) -> None:
    deadline = time.monotonic() + 30
    while len(loaders.alive()) < n:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def ask_for_all_sizes() -> None:
    sizes = [[], [0], [1], [0, 63, 64, 65, 0], [1000] * 40, [16384, 16385, 16384], [40000] * 3 + [5] * 9]
    sizes += [[1 << 20], [3, 8 << 20, 4]]
    where_the_way_changes = constants.BLOCK_ANYWHERE, constants.BLOCK_SMALL, constants.PIECE_SMALL, constants.ALONG_MAX
    for at in (*where_the_way_changes, constants.HUGE_PAGE // 2):
        sizes += [[at - 1], [at], [at + 1], [at - 1, at, at + 1], [7, at - 8], [at - 8, 9]]
    for number, wanted in enumerate(sizes):
        for loader in 0, 1:
            send(loader, 2 * number + loader, sizes=wanted)
    send(me, 100, sizes=[64 << 20])
    send(1 - me, 101, sizes=[], text="x" * 3_000_000)
    if me == 1:  # takes nothing until the other trainer has finished
        while not trainer.communicator.iprobe(0, 7):
            time.sleep(0.01)
        trainer.communicator.recv(source=0, tag=7)
    held = []
    while waits:
        held.append(take())
    held = [parcel for parcel in held if isinstance(parcel, Parcel)]
    assert len(held) == 2 * len(sizes) + 2
    assert {parcel.loader for parcel in held} == alive == {0, 1} == loaders.alive()


def ask_through_a_death() -> Lost:
    """Request again what a lost loader owes; return the loss."""
    dying, todo, seen, lost = {11} if me == 0 else set(), list(range(30)), [], []
    while todo or waits or not lost:  # the other trainer's fatal request may come late
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
            again = [number for number, (loader, _) in waits.items() if loader == what.loader]
            todo.extend(again)
            for number in again:
                del waits[number]
    assert sorted(seen) == list(range(30)), seen
    (loss,) = lost
    return loss


wait_for_loaders(2)
ask_for_all_sizes()
if me == 0:
    trainer.communicator.send(None, 1, 7)
trainer.communicator.barrier()
loss = ask_through_a_death()
wait_for_loaders(2)
while len(alive) < 2:
    take()
loaders.drop(DATASET)
assert alive == {0, 1, 2} - {loss.loader} == loaders.alive()
print("=> exact", [loss.at], flush=True)
