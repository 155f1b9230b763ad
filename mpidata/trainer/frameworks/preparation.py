"""Keep accelerate, and transformers' Trainer, which uses it, from dividing what the trainers already share."""

from __future__ import annotations

import functools
import inspect
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from torch.utils.data import DataLoader, Dataset, Sampler

__all__ = ["Batches", "Joined", "Make", "kept", "teach_accelerate", "undivided_stream"]

# Arguments of a torch DataLoader, for another one around the same samples.
_KEPT = ("num_workers", "collate_fn", "pin_memory", "timeout", "worker_init_fn", "multiprocessing_context",
         "generator", "prefetch_factor", "persistent_workers")  # fmt: skip

Make: TypeAlias = Callable[[Any, int], Any]

_taught: list[Callable[..., Any]] = []
_makers: dict[type, Make] = {}


def teach_accelerate(kind: type | None = None, make: Make | None = None) -> None:
    """Keep accelerate from dividing DataLoaders of datasets that the trainers already share; once, if it is imported.

    Parameters
    ----------
    kind : type, optional
        Class of datasets that the trainers already share.
    make : callable, optional
        Gets a DataLoader around one, and the number of parts into which its batches must be split; returns the
        DataLoader for this trainer to iterate over, or None to let accelerate divide it.

    Notes
    -----
    accelerate does not ask a dataset whether to divide it, and has no option for one of several DataLoaders. So this
    wraps its public `prepare_data_loader` in a function that changes the arguments for these DataLoaders.
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
    """Return the DataLoader for this trainer to iterate over, from one around a stream."""
    size = loader.batch_size
    if size is None or parts == 1:
        return loader
    return DataLoader(loader.dataset, size // parts or 1, drop_last=loader.drop_last, **kept(loader))


def kept(loader: Any) -> dict[str, Any]:
    """Return the arguments of a DataLoader for another one around the same samples."""
    return {name: getattr(loader, name) for name in _KEPT}


class Joined(Dataset[Any]):
    """Validation samples as accelerate must see them.

    Parameters
    ----------
    dataset : Dataset
        The samples of this trainer.
    length : int
        Number of samples of all trainers.
    filled_up_from : int
        How many rows of all trainers in the last step are real, from the first one on; 0: all.

    Attributes
    ----------
    total_dataset_length : int
        accelerate divides it by the batch size of all trainers, and truncates the rows that `gather_for_metrics` joins
        in the last step to the remainder.
    """

    def __init__(self, dataset: Dataset[Any], length: int, filled_up_from: int) -> None:
        self._dataset, self._length, self.total_dataset_length = dataset, length, filled_up_from

    def __len__(self) -> int:
        """Return the number of samples of all trainers, which frameworks report."""
        return self._length

    def __getitem__(self, index: int) -> Any:
        """Return a sample of this trainer."""
        return self._dataset[index]


class Batches(Sampler[list[int]]):
    """Indices of n samples, each once, in batches that have the same size on all trainers in each step.

    If n is not a multiple of `trainers`, the last trainers repeat a sample of the first ones in the last step.

    Parameters
    ----------
    n : int
        Number of samples.
    batch_size : int
        Largest size of a batch; sizes are nearly equal, because some losses are means over batches.
    trainer, trainers : int
        Number of this trainer, and number of trainers.
    drop_last : bool
        Leave out the samples that do not fill a batch on all trainers.

    Attributes
    ----------
    batch_size, num_processes : int
        accelerate divides by their product.
    real_in_last_step : int
        Number of samples in the last step without repeated ones; 0 if none is repeated.
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
        """Return the number of batches."""
        return self._steps

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the batches of this trainer."""
        for number in range(self._steps):
            step = self._step(number)
            first = step.start * self.num_processes + self._trainer * len(step)
            yield [index % self._n for index in range(first, first + len(step))]

    def _step(self, number: int) -> range:
        return range(number * self._each // self._steps, (number + 1) * self._each // self._steps)
