"""Uses of a stream in a DataLoader, or in what wraps one, that would go wrong without a word."""

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

__all__ = ["NotCopied", "check_skipping", "refuse_loader", "refuse_pinning", "refuse_workers"]

_FETCHER = "_IterableDatasetFetcher"
# Of accelerate.
_DEALERS = ("DataLoaderDispatcher", "IterableDatasetShard")
_SKIPPERS = ("DataLoaderDispatcher", "DataLoaderShard", "SkipDataLoader")


def _no_workers(what: str) -> str:
    """Say why there can be no worker processes."""
    return (
        f"{what} does not work with MPIStreamDataset: a DataLoader's workers are forked processes, and MPI does not "
        "survive a fork. Use num_workers=0: a thread of the library already receives samples in the background."
    )


def _no_copy(how: str) -> str:
    """Say why there is only one stream."""
    return (
        f"MPIStreamDataset cannot be {how}: its samples exist only once, in this trainer's stream. Use the same "
        "object, or make another MPIStreamDataset with the same batch_size: each sample goes to one of them. "
        "Where an object with the stream as an attribute is copied or saved, leave the stream out."
    )


class NotCopied:
    """What is neither copied nor pickled, with a sentence that says so."""

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
    """Raise StreamError if a DataLoader of torch would put batches that are on a device into page-locked memory."""
    if on_device and any(getattr(caller, "_pin_memory", False) for caller in callers()):
        raise StreamError(
            "DataLoader(pin_memory=True) cannot page-lock batches that are on a device. Leave its pin_memory out: "
            "page-locked memory is used on the way there."
        )


def refuse_loader(stream: IterableDataset[Any], grouping: Grouping, trainers: int, lengths: Sequence[str]) -> None:
    """Look at what begins a pass: raises StreamError, or warns, where its arguments do not suit a stream.

    Parameters
    ----------
    stream : IterableDataset
        Whose pass it is.
    grouping : Grouping
        Of the stream.
    trainers : int
        Number of trainers of the job.
    lengths : sequence of str
        Names of the lengths that samples have for themselves.

    Notes
    -----
    To be called by the dataset's `__iter__`. A dataset is not told who iterates over it, so this looks at the callers.
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
                "drop_last=True leaves out the last samples of each pass, though a stream has them only once. Give "
                "batch_size to MPIStreamDataset: then all batches are whole, and buffer.tail says what becomes of the "
                "rest.",
                stacklevel=4,
            )
        if name in _DEALERS and trainers > 1 and getattr(caller, "num_processes", None) != 1:
            raise StreamError(
                "accelerator.prepare(DataLoader(stream)) would deal the batches of one trainer out to all, but each "
                "trainer has a stream of its own, with other samples. Import accelerate, or transformers, before the "
                "stream is made: then each trainer has all of its own."
            )


def check_skipping(in_place: bool) -> None:
    """Raise StreamError if accelerate would drop the first batches of a pass; if `in_place`, have it drop none.

    Parameters
    ----------
    in_place : bool
        The job's checkpoint has brought the stream to where batches are to be skipped up to.
    """
    for caller in callers():
        # accelerate with use_stateful_dataloader gives its own name to torchdata's class, which skips nothing
        skipped = getattr(caller, "skip_batches", 0) if type(caller).__name__ in _SKIPPERS else 0
        if skipped and not in_place:
            raise StreamError(
                f"accelerate would drop the first {skipped} batches of this pass over the stream, which nobody has "
                "trained on. A stream cannot be skipped forward: `mpidata run --resume` continues it where the job's "
                "checkpoint is. Leave skip_first_batches out; with transformers, give "
                "TrainingArguments(ignore_data_skip=True)."
            )
        if skipped:
            caller.skip_batches = 0
