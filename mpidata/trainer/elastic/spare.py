"""A trainer that waits until another one has died, and replaces it with the state of the others."""

from __future__ import annotations

import ctypes
import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from mpidata.checkpoint.published import restore_published
from mpidata.checkpoint.restore import Restored
from mpidata.checkpoint.trainer_file import Saved
from mpidata.errors import StreamError
from mpidata.loading.figures import RETIRES
from mpidata.native.library import check
from mpidata.trainer.elastic.members import Members
from mpidata.trainer.elastic.streams.shared_stream import pack_trained, take_trained

if TYPE_CHECKING:
    from mpidata.native.library import Library
    from mpidata.trainer.trainer import Trainer

__all__ = ["orders_of", "prepare", "wait_for_place"]


def prepare(trainer: Trainer) -> None:
    """Set the callables of `Members` in a job with spares, for the state to send and the scheduler's orders."""
    members = _members(trainer)
    members.orders = orders_of(trainer.library)
    members.giving.pack = lambda: _pack(trainer)
    members.giving.begin = lambda: _take_place(trainer)
    members.retire = lambda: _retire(trainer)


def orders_of(library: Library) -> Callable[[], tuple[int, int]]:
    """Return a callable that returns the newest order and its number of trainers; -1 if the job stops."""
    number, count = ctypes.c_int64(), ctypes.c_int64()

    def orders() -> tuple[int, int]:
        check(library, library.mpidata_trainer_wanted(ctypes.byref(number), ctypes.byref(count)))
        return number.value, count.value

    return orders


def wait_for_place(trainer: Trainer) -> None:
    """Sleep until this spare has a place, and take over the others' state; if it is not needed, end the script."""
    members, library = _members(trainer), trainer.library
    _load()
    state = members.wait_for_place()
    if state is None:
        _leave(trainer)
    trainer.drawn, held, members.giving.model, of_stream = pickle.loads(state)
    if of_stream is not None and members.drawn is not None:
        trained, members.drawn.room = of_stream
        take_trained(library, trained)
    check(library, library.mpidata_trainer_be_at(trainer.drawn))
    saved = {name: Saved(*of) for name, of in held.items()}
    restore_published(library, saved)
    trainer.checkpoints.restored = Restored(trainer.drawn, saved, members.count)


def _take_place(trainer: Trainer) -> None:
    check(trainer.library, trainer.library.mpidata_trainer_takes_place())
    if trainer.servers is not None:
        trainer.servers.settle()  # before the first agreement: no checkpoint with this trainer is saved without it


def _load() -> None:
    """Load what takes torch seconds with the first optimizer: the others wait for a trainer that takes a place."""
    import torch

    torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.1)


def _members(trainer: Trainer) -> Members:
    assert trainer.members is not None
    return trainer.members


def _pack(trainer: Trainer) -> bytes:
    states, model = trainer.checkpoints.states(), _members(trainer).giving.model
    if parted := [name for name, saved in states.items() if saved.layout]:
        raise StreamError(
            f"Each trainer has only a part of {parted[0]}, but a spare that takes a place would need all parts. Remove "
            "'trainers.spares', or register an object that each trainer holds as a whole."
        )
    drawn = _members(trainer).drawn
    of_stream = None if drawn is None else (pack_trained(trainer.library), drawn.room)
    held = {name: tuple(of) for name, of in states.items()}
    return pickle.dumps((trainer.drawn, held, callable(model) and model(), of_stream))


def _retire(trainer: Trainer) -> NoReturn:
    trainer.library.mpidata_trainer_report(RETIRES.encode(), 1.0)
    trainer.turns.in_epoch = False
    _leave(trainer)


def _leave(trainer: Trainer) -> NoReturn:
    """Leave the job, and end the script normally."""
    check(trainer.library, trainer.library.mpidata_trainer_rests())
    trainer.ended = True
    trainer.close()
    raise SystemExit(0)
