"""accelerate, and transformers' Trainer, which is built on it: what is dealt out to the trainers stays undivided."""

from __future__ import annotations

import functools
import inspect
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from torch.utils.data import DataLoader, Dataset, Sampler

__all__ = ["Batches", "Joined", "Make", "kept", "teach_accelerate", "undivided_stream"]

# Of a DataLoader of torch, for another one around the same samples.
_KEPT = ("num_workers", "collate_fn", "pin_memory", "timeout", "worker_init_fn", "multiprocessing_context",
         "generator", "prefetch_factor", "persistent_workers")  # fmt: skip

Make: TypeAlias = Callable[[Any, int], Any]

_taught: list[Callable[..., Any]] = []
_makers: dict[type, Make] = {}


def teach_accelerate(kind: type | None = None, make: Make | None = None) -> None:
    """Have accelerate leave a DataLoader around what is dealt out already undivided; if it is imported, and once.

    Parameters
    ----------
    kind : type, optional
        Of datasets that are dealt out.
    make : callable, optional
        Gets a DataLoader around one, and among how many parts its batches are to be split; gives the DataLoader that
        this trainer is to iterate over, or None if accelerate is to deal it out.

    Notes
    -----
    accelerate asks no dataset whether it is to be dealt out, and has no switch for one of several DataLoaders. So this
    puts a function around its public `prepare_data_loader`, which passes other arguments on for these DataLoaders.
    """
    if kind is not None and make is not None:
        _makers[kind] = make
    module = sys.modules.get("accelerate.accelerator")
    prepare = getattr(module, "prepare_data_loader", None)
    if module is not None and prepare is not None and prepare not in _taught:
        module.prepare_data_loader = _around(prepare)  # type: ignore[attr-defined]
        _taught.append(module.prepare_data_loader)


def _around(prepare: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(prepare)

    @functools.wraps(prepare)
    def prepare_data_loader(*arguments: Any, **named: Any) -> Any:
        bound = signature.bind(*arguments, **named)
        given = bound.arguments
        parts = given.get("num_processes") or 1 if given.get("split_batches") else 1
        loader = given["dataloader"]
        make = next((make for kind, make in _makers.items() if isinstance(loader.dataset, kind)), None)
        undivided = make(loader, parts) if make is not None else None
        if undivided is not None:
            given |= {"dataloader": undivided, "num_processes": 1, "process_index": 0}
            given |= {"split_batches": False, "dispatch_batches": False}
        return prepare(*bound.args, **bound.kwargs)

    return prepare_data_loader


def undivided_stream(loader: Any, parts: int) -> Any:
    """Make of a DataLoader around a stream what this trainer is to iterate over."""
    size = loader.batch_size
    if size is None or parts == 1:
        return loader
    return DataLoader(loader.dataset, size // parts or 1, drop_last=loader.drop_last, **kept(loader))


def kept(loader: Any) -> dict[str, Any]:
    """Give the arguments of a DataLoader for another one around the same samples."""
    return {name: getattr(loader, name) for name in _KEPT}


class Joined(Dataset[Any]):
    """Validation samples, as accelerate is to see them.

    Parameters
    ----------
    dataset : Dataset
        Of this trainer.
    length : int
        Samples of all trainers.
    filled_up_from : int
        How many rows of what the trainers have in the last step are real, those at the beginning; 0: all.

    Attributes
    ----------
    total_dataset_length : int
        accelerate divides it by the batch size of all trainers, and cuts what `gather_for_metrics` joins in the last
        step to the rest.
    """

    def __init__(self, dataset: Dataset[Any], length: int, filled_up_from: int) -> None:
        self._dataset, self._length, self.total_dataset_length = dataset, length, filled_up_from

    def __len__(self) -> int:
        """Count the samples of all trainers, which frameworks report."""
        return self._length

    def __getitem__(self, index: int) -> Any:
        """Get a sample of this trainer."""
        return self._dataset[index]


class Batches(Sampler[list[int]]):
    """Indices of n samples in batches that are equally large on all trainers in each step, each sample once.

    If the trainers do not divide n, the last of them have a sample of the first ones again in the last step.

    Parameters
    ----------
    n : int
        Number of samples.
    batch_size : int
        At most so many in a batch; they are about equally large, as some losses are means over batches.
    trainer, trainers : int
        Number of this trainer, and how many there are.
    drop_last : bool
        Leave out what does not fill a batch on all trainers.

    Attributes
    ----------
    batch_size, num_processes : int
        By whose product accelerate divides.
    real_in_last_step : int
        Number of samples in the last step without those that come again; 0 if none does.
    """

    def __init__(self, n: int, batch_size: int, trainer: int, trainers: int, *, drop_last: bool) -> None:
        if drop_last:
            n -= n % (batch_size * trainers)
        self.batch_size, self.num_processes = batch_size, trainers
        self._n, self._trainer, self._each = n, trainer, math.ceil(n / trainers)
        self._steps = math.ceil(self._each / batch_size)
        again = self._each * trainers - n
        self.real_in_last_step = len(self._step(self._steps - 1)) * trainers - again if again else 0

    def __len__(self) -> int:
        """Count the batches."""
        return self._steps

    def __iter__(self) -> Iterator[list[int]]:
        """Go through the batches of this trainer."""
        for number in range(self._steps):
            step = self._step(number)
            first = step.start * self.num_processes + self._trainer * len(step)
            yield [index % self._n for index in range(first, first + len(step))]

    def _step(self, number: int) -> range:
        return range(number * self._each // self._steps, (number + 1) * self._each // self._steps)
