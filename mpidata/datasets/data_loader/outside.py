"""DataLoader outside a job: torch's own, in this process."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch.utils.data

from mpidata.alone.outside import say_no_job
from mpidata.datasets.data_loader.share import ShareBatches, ShareSampler
from mpidata.datasets.epochs.dealing import Dealing
from mpidata.datasets.epochs.position import Position
from mpidata.datasets.epochs.random_states import (
    States,
    continue_in,
    drawn_as_in,
    of_process,
    of_sampler,
    set_of_sampler,
)
from mpidata.trainer.place import group_place

__all__ = ["Outside"]

# Of worker processes, which are not there, and what torch no longer has.
_NOT_FOR_TORCH = (
    *("num_workers", "multiprocessing_context", "persistent_workers", "timeout", "prefetch_factor", "in_order"),
    "pin_memory_device",
)


class Outside(torch.utils.data.DataLoader[Any]):
    """torch's DataLoader with ``num_workers=0``, and the methods of `mpidata.DataLoader`.

    Batches, order and random numbers are those of torch. With `share` the processes of torch.distributed get their
    shares of each epoch, as the trainers of a job do.

    Parameters
    ----------
    arguments : mapping
        All of `mpidata.DataLoader`, checked.
    """

    _is_accelerate_prepared: Any = False  # as any DataLoader of torch

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        say_no_job()
        given = {name: value for name, value in arguments.items() if name not in _NOT_FOR_TORCH}
        dataset, self.share = given.pop("dataset"), given.pop("share")
        self._position = Position()
        self._now: States | None = None  # of a loaded state
        if isinstance(dataset, str):
            module, _, function = dataset.partition(":")
            dataset = getattr(importlib.import_module(module), function)()
        if not self.share:
            torch.utils.data.DataLoader.__init__(self, dataset, **given)
            return
        batch_size, shuffle, drop_last = (given.pop(name) for name in ("batch_size", "shuffle", "drop_last"))
        seed = given["generator"].initial_seed() if given["generator"] is not None else 0
        n = len(dataset)
        shares = ShareBatches(
            n, Dealing(n, batch_size, *group_place(), drop_last), bool(shuffle),
            lambda: (seed, self._position.epoch), lambda: shares.next_batches(), self._position.set_epoch,
        )  # fmt: skip
        torch.utils.data.DataLoader.__init__(self, dataset, **(given | {"batch_sampler": shares}))
        sampler = ShareSampler(shares, self._position.set_epoch)
        self.__dict__.update(batch_size=batch_size, drop_last=drop_last, sampler=sampler)  # torch refuses to set them

    def __iter__(self) -> Any:
        """Begin the next epoch, or the one that was set, or continue where a loaded state ends."""
        place, position = self._position.begin(), self._position
        if self._now is not None and position.random is not None:  # within an epoch
            return _given(self._made_again(position.random, self._now), position.batches, place.given)
        self._put(self._now)
        position.draw_with(None, self._states(), lambda: (None, None))
        return _given(torch.utils.data.DataLoader.__iter__(self), 0, place.given)

    def _made_again(self, begun: States, now: States) -> Iterator[Any]:
        """Make the batches before the place of a state once more, as then, and go on with its random numbers."""
        with drawn_as_in(begun["process"]):
            set_of_sampler(self, begun["generators"])
            batches = torch.utils.data.DataLoader.__iter__(self)
            for _ in range(self._position.batches):
                next(batches, None)
        self._put(now)
        yield from batches

    def _states(self) -> States:
        """Give the states of the generators of the process, and of the loader and its samplers."""
        return {"process": of_process(), "generators": of_sampler(self)}

    def _put(self, states: States | None) -> None:
        self._now = None
        if states is not None:
            continue_in(states["process"])
            set_of_sampler(self, states["generators"])

    def refresh(self) -> None:
        """Do nothing: the dataset is the script's own."""

    def state_dict(self) -> dict[str, Any]:
        """Return the place in the epochs, after the batch that was given out last, and the states of the generators.

        Those of random, numpy and torch, from which datasets and samplers may draw, and of the loader and its samplers.
        """
        return {**self._position.state(), "now": self._states()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a `state_dict()` with the next iteration, which makes the batches before it once more."""
        self._position.load(dict(state_dict), "an mpidata.DataLoader outside a job", _length(self))
        self._now = state_dict.get("now")


def _length(loader: torch.utils.data.DataLoader[Any]) -> int | None:
    try:
        return len(loader)
    except TypeError:  # of a sampler without a length
        return None


def _given(batches: Iterator[Any], first: int, given: Callable[[int | None], None]) -> Iterator[Any]:
    for number, batch in enumerate(batches, first):
        given(number)
        yield batch
    given(None)
