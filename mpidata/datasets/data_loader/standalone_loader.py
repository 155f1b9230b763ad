"""DataLoader outside a job: torch's own, in this process."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch.utils.data

from mpidata.datasets.data_loader.share import ShareBatches, ShareSampler
from mpidata.datasets.epochs.accelerate_pass import AcceleratePass
from mpidata.datasets.epochs.position import Position
from mpidata.datasets.epochs.random_states import (
    States,
    continue_in,
    drawn_as_in,
    of_process,
    of_sampler,
    set_of_sampler,
)
from mpidata.datasets.epochs.share_assignment import Dealing
from mpidata.device.prefetch import choose_prefetcher
from mpidata.run.job_environment import say_no_job
from mpidata.trainer.loader_access import group_place

__all__ = ["StandaloneLoader"]

# Arguments for worker processes, which do not exist here, and those that torch no longer has.
_NOT_FOR_TORCH = (
    *("num_workers", "multiprocessing_context", "persistent_workers", "timeout", "prefetch_factor", "in_order"),
    *("pin_memory_device", "device", "device_prefetch"),
)


class StandaloneLoader(torch.utils.data.DataLoader[Any]):
    """torch's DataLoader with ``num_workers=0``, and the methods of `mpidata.DataLoader`.

    Batches, order and random numbers are those of torch. With `share` the processes of torch.distributed get their
    shares of each epoch, as the trainers of a job do.

    Parameters
    ----------
    arguments : mapping
        All of `mpidata.DataLoader`, checked.
    """

    _shares: ShareBatches | None = None
    _prepared = False

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        say_no_job()
        device, prefetch, pinned = (arguments[name] for name in ("device", "device_prefetch", "pin_memory"))
        self._prefetcher = choose_prefetcher("DataLoader", device, prefetch, pin_memory=pinned)
        given = {name: value for name, value in arguments.items() if name not in _NOT_FOR_TORCH}
        dataset, self.share = given.pop("dataset"), given.pop("share")
        self._position = Position()
        self._now: States | None = None  # from a loaded state
        if isinstance(dataset, str):
            module, _, function = dataset.partition(":")
            dataset = getattr(importlib.import_module(module), function)()
        if not self.share:
            torch.utils.data.DataLoader.__init__(self, dataset, **given)
            return
        batch_size, shuffle, drop_last = (given.pop(name) for name in ("batch_size", "shuffle", "drop_last"))
        seed = given["generator"].initial_seed() if given["generator"] is not None else 0
        n = len(dataset)
        self._dealing = functools.partial(Dealing, n, batch_size, drop_last=drop_last)
        self._dealt_to = group_place()
        shares = ShareBatches(
            n, self._dealing(*self._dealt_to), bool(shuffle), lambda: (seed, self._position.epoch),
            lambda: shares.next_batches(), self._position.set_epoch,
        )  # fmt: skip
        torch.utils.data.DataLoader.__init__(self, dataset, **(given | {"batch_sampler": shares}))
        sampler = ShareSampler(shares, self._position.set_epoch)
        self.__dict__.update(batch_size=batch_size, drop_last=drop_last, sampler=sampler)  # torch refuses to set them
        self._shares = shares

    def __len__(self) -> int:
        """Return the number of batches of an epoch."""
        self._deal()
        return super().__len__()

    def _deal(self) -> None:
        """Divide among the processes of the group, which may have been created after this object."""
        if self._shares is not None and group_place() != self._dealt_to:
            self._dealt_to = group_place()
            self._shares.dealing = self._dealing(*self._dealt_to)

    @property
    def _is_accelerate_prepared(self) -> bool:
        """Keep accelerate from wrapping this if the batches are already divided."""
        return self.share or self._prepared

    @_is_accelerate_prepared.setter
    def _is_accelerate_prepared(self, value: bool) -> None:
        self._prepared = value
        if self._shares is not None:
            self._shares.even_batches = value

    def _accelerate_pass(self) -> AcceleratePass | None:
        return AcceleratePass(self._shares.remainder()) if self._prepared and self._shares is not None else None

    def __iter__(self) -> Any:
        """Start the next epoch, or the one that was set, or continue from a loaded state."""
        self._deal()
        place, position, accelerate = self._position.begin(), self._position, self._accelerate_pass()
        if self._now is not None and position.random is not None:  # within an epoch
            again = self._made_again(position.random, self._now)
            return self._given(again, position.batches, place.given, accelerate)
        self._put(self._now)
        position.draw_with(None, self._states(), lambda: (None, None))
        return self._given(torch.utils.data.DataLoader.__iter__(self), 0, place.given, accelerate)

    def _given(
        self, batches: Iterator[Any], first: int, given: Callable[[int | None], None], accelerate: AcceleratePass | None
    ) -> Iterator[Any]:
        last = len(self) - 1 if accelerate is not None else -1
        prefetcher = self._prefetcher(True)  # a batch made in advance would change the state after this one
        for number, batch in enumerate(batches, first):
            given(number)
            if accelerate is not None:
                accelerate.begin()
            if accelerate is not None and number == last:
                accelerate.last()
            yield batch if prefetcher is None else prefetcher.now(batch)
        given(None)
        if accelerate is not None:
            accelerate.end()

    def _made_again(self, begun: States, now: States) -> Iterator[Any]:
        """Recreate the batches before a state's position, then continue with the state's random numbers."""
        with drawn_as_in(begun["process"]):
            set_of_sampler(self, begun["generators"])
            batches = torch.utils.data.DataLoader.__iter__(self)
            for _ in range(self._position.batches):
                next(batches, None)
        self._put(now)
        yield from batches

    def _states(self) -> States:
        """Return the states of the generators of the process, and of the loader and its samplers."""
        return {"process": of_process(), "generators": of_sampler(self)}

    def _put(self, states: States | None) -> None:
        self._now = None
        if states is not None:
            continue_in(states["process"])
            set_of_sampler(self, states["generators"])

    def refresh(self) -> None:
        """Do nothing: there is no copy of the dataset."""

    def state_dict(self) -> dict[str, Any]:
        """Return the position in the epochs, after the last batch that was returned, and the states of the generators.

        These are random, numpy and torch, from which datasets and samplers may draw, the loader and its samplers.
        """
        return {**self._position.state(), "now": self._states()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a `state_dict()` with the next iteration, which first recreates the batches before it."""
        self._position.load(dict(state_dict), "an mpidata.DataLoader outside a job", _length(self))
        self._now = state_dict.get("now")


def _length(loader: torch.utils.data.DataLoader[Any]) -> int | None:
    try:
        return len(loader)
    except TypeError:  # the sampler has no length
        return None
