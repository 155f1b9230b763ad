"""DataLoader outside a job: torch's own, in this process."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch.utils.data

from mpidata.alone.outside import say_no_job
from mpidata.datasets.data_loader.share import ShareBatches, ShareSampler
from mpidata.datasets.epochs.position import Position
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
        if isinstance(dataset, str):
            module, _, function = dataset.partition(":")
            dataset = getattr(importlib.import_module(module), function)()
        if not self.share:
            torch.utils.data.DataLoader.__init__(self, dataset, **given)
            return
        batch_size, shuffle, drop_last = (given.pop(name) for name in ("batch_size", "shuffle", "drop_last"))
        seed = given["generator"].initial_seed() if given["generator"] is not None else 0
        shares = ShareBatches(
            len(dataset), batch_size, *group_place(), bool(shuffle), drop_last,
            lambda: (seed, self._position.epoch), lambda: shares.next_batches(), self._position.set_epoch,
        )  # fmt: skip
        torch.utils.data.DataLoader.__init__(self, dataset, **(given | {"batch_sampler": shares}))
        sampler = ShareSampler(shares, self._position.set_epoch)
        self.__dict__.update(batch_size=batch_size, drop_last=drop_last, sampler=sampler)  # torch refuses to set them

    def __iter__(self) -> Any:
        """Begin the next epoch, or the one that was set, or continue where a loaded state ends."""
        place, generator = self._position.begin(), self.generator or torch.default_generator
        if self._position.random is not None:
            generator.set_state(self._position.random)
        self._position.draw_with(None, generator.get_state(), lambda: (None, None))
        return _batches(torch.utils.data.DataLoader.__iter__(self), self._position.batches, place.given)

    def refresh(self) -> None:
        """Do nothing: the dataset is the script's own."""

    def state_dict(self) -> dict[str, Any]:
        """Return the place in the epochs, after the batch that was given out last."""
        return self._position.state()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a `state_dict()` with the next iteration, which makes the batches before it once more."""
        self._position.load(dict(state_dict), "an mpidata.DataLoader outside a job", _length(self))


def _length(loader: torch.utils.data.DataLoader[Any]) -> int | None:
    try:
        return len(loader)
    except TypeError:  # of a sampler without a length
        return None


def _batches(batches: Iterator[Any], first: int, given: Callable[[int | None], None]) -> Iterator[Any]:
    for number, batch in enumerate(batches):
        if number >= first:
            given(number)
            yield batch
    given(None)
