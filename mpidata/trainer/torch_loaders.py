"""Detect uses of a stream in a DataLoader, or in a wrapper of one, that would silently go wrong."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from multiprocessing.context import get_spawning_popen
from typing import Any, NoReturn

from torch.utils.data import IterableDataset, get_worker_info

from mpidata.errors import StreamError
from mpidata.packing import refuse_fetcher
from mpidata.trainer.frameworks.callers import callers
from mpidata.trainer.frameworks.processes import check_processes
from mpidata.trainer.shares.grouping import Grouping

__all__ = ["Unpicklable", "check_skipping", "refuse_loader", "refuse_pinning", "refuse_workers"]

_FETCHER = "_IterableDatasetFetcher"
# Classes of accelerate.
_DEALERS = ("DataLoaderDispatcher", "IterableDatasetShard")
_SKIPPERS = ("DataLoaderDispatcher", "DataLoaderShard", "SkipDataLoader")


def _no_workers(what: str) -> str:
    """Return why there can be no worker processes."""
    return (
        f"{what} does not work with MPIStreamDataset: a DataLoader's workers are forked processes, and MPI does not "
        "survive a fork. Use num_workers=0: a thread of the library already receives samples in the background."
    )


def _no_copy(how: str) -> str:
    """Return why there is only one stream."""
    return (
        f"MPIStreamDataset cannot be {how}: its samples exist only once, in this trainer's stream. Use the same "
        "object, or create another MPIStreamDataset with the same batch_size: each sample goes to one of them. "
        "If an object with the stream as an attribute is copied or saved, exclude the stream."
    )


class Unpicklable:
    """Base class of objects that cannot be copied or pickled, with an error that explains it."""

    def __copy__(self) -> NoReturn:
        """Refuse to be copied."""
        raise StreamError(_no_copy("copied"))

    def __deepcopy__(self, memo: object) -> NoReturn:
        """Refuse to be copied."""
        raise StreamError(_no_copy("copied"))

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled, as a DataLoader does for its workers if it does not fork."""
        raise StreamError(_no_workers("num_workers > 0") if get_spawning_popen() else _no_copy("pickled"))


def refuse_workers() -> None:
    """Raise StreamError in a worker process of a DataLoader."""
    info = get_worker_info()
    if info is not None:
        raise StreamError(_no_workers(f"num_workers={info.num_workers}"))


def refuse_pinning(on_device: bool) -> None:
    """Raise StreamError if a torch DataLoader would put batches that are on a device into page-locked memory."""
    if on_device and any(getattr(caller, "_pin_memory", False) for caller in callers()):
        raise StreamError(
            "DataLoader(pin_memory=True) cannot page-lock batches that are on a device. Leave its pin_memory out: "
            "the copies to the device already use page-locked memory."
        )


def refuse_loader(stream: IterableDataset[Any], grouping: Grouping, trainers: int, lengths: Sequence[str]) -> None:
    """Check the callers that start a pass: raises StreamError, or warns, if their arguments do not fit a stream.

    Parameters
    ----------
    stream : IterableDataset
        The stream of the pass.
    grouping : Grouping
        The grouping of the stream.
    trainers : int
        Number of trainers of the job.
    lengths : sequence of str
        Names of the lengths that differ between samples.

    Notes
    -----
    The dataset's `__iter__` calls this. A dataset does not know who iterates over it, so this inspects the callers.
    """
    refuse_workers()
    check_processes(trainers)
    for caller in callers():
        name = type(caller).__name__
        if name == _FETCHER and caller.auto_collation and grouping.most is not None:
            raise StreamError(
                f"A DataLoader with a batch_size around MPIStreamDataset({grouping}) would make batches "
                "of batches. Use DataLoader(stream, batch_size=None), the stream itself, or a stream without "
                f"{str(grouping).partition('=')[0]}."
            )
        if name == _FETCHER:
            refuse_fetcher(caller, stream, lengths, "stream.fields")
        if name == _FETCHER and caller.drop_last:
            warnings.warn(
                "drop_last=True leaves out the last samples of each pass, but a stream has them only once. Give "
                "batch_size to MPIStreamDataset: then all batches are full, and buffer.tail determines what happens to "
                "the remaining samples.",
                stacklevel=4,
            )
        if name in _DEALERS and trainers > 1 and getattr(caller, "num_processes", None) != 1:
            raise StreamError(
                "accelerator.prepare(DataLoader(stream)) would divide the batches of one trainer among all, but each "
                "trainer has its own stream, with other samples. Import accelerate, or transformers, before the stream "
                "is created: then each trainer keeps all of its samples."
            )


def check_skipping(in_place: bool) -> None:
    """Raise StreamError if accelerate would drop the first batches of a pass; if `in_place`, make it drop none.

    Parameters
    ----------
    in_place : bool
        Whether the job's checkpoint has already moved the stream to where accelerate would skip to.
    """
    for caller in callers():
        # with use_stateful_dataloader accelerate gives its own name to torchdata's class, which skips nothing
        skipped = getattr(caller, "skip_batches", 0) if type(caller).__name__ in _SKIPPERS else 0
        if skipped and not in_place:
            raise StreamError(
                f"accelerate would drop the first {skipped} batches of this pass over the stream, which were not used "
                "for training. A stream cannot skip batches: `mpidata run --resume` continues it from the job's "
                "checkpoint. Leave skip_first_batches out; with transformers, give "
                "TrainingArguments(ignore_data_skip=True)."
            )
        if skipped:
            caller.skip_batches = 0
