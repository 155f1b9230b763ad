"""Find the framework objects that start a pass over a dataset, by inspecting the stack: a dataset does not know."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from types import FrameType
from typing import Any

from torch.utils.data import DataLoader

from mpidata.errors import StreamError

__all__ = [
    "callers",
    "counts_passes",
    "fetched_ahead",
    "leave_whole",
    "overfits",
    "overfitting",
    "refuses_empty",
    "validates",
]

_FRAMES, _MORE_FRAMES = 12, 24
_LIGHTNING = ("lightning", "pytorch_lightning")
_FRAMEWORKS = (*_LIGHTNING, "accelerate", "torch", "torchdata", "transformers")


def _frames_above(depth: int, most: int | None = _FRAMES) -> Iterator[FrameType]:
    """Yield at most `most` frames, innermost first, starting `depth` above the caller's own."""
    frame: FrameType | None = sys._getframe(depth + 1)
    while frame is not None and most != 0:
        yield frame
        frame, most = frame.f_back, None if most is None else most - 1


def callers() -> Iterator[Any]:
    """Yield the framework objects whose methods led to this call, innermost first."""
    for frame in _frames_of(_FRAMEWORKS, _FRAMES):
        if (caller := frame.f_locals.get("self")) is not None:
            yield caller


def _frames_of(packages: Collection[str], most: int | None = None) -> Iterator[FrameType]:
    """Yield only frames of functions of these packages: f_locals keeps alive what the variables hold."""
    for frame in _frames_above(2, most):
        if str(frame.f_globals.get("__name__")).partition(".")[0] in packages:
            yield frame


def overfits() -> bool:
    """Whether a Lightning Trainer with `overfit_batches`, which needs the same batches in each pass, is running."""
    if not any(name in sys.modules for name in _LIGHTNING):
        return False
    return any(getattr(frame.f_locals.get("self"), "overfit_batches", 0) for frame in _frames_of(_LIGHTNING))


def fetched_ahead() -> int:
    """Return how many samples, or batches, the caller of this pass has fetched but not used when its loop is left.

    accelerate's loaders and Lightning's fetcher are a batch ahead of the loop, to detect the last one.
    """
    size = 1
    for frame in _frames_of(_FRAMEWORKS, _MORE_FRAMES):
        caller: Any = frame.f_locals.get("self")
        if isinstance(caller, DataLoader):
            size = caller.batch_size or 1
        if type(caller).__name__ == "_PrefetchDataFetcher" and caller.length is None:
            return size * int(caller.prefetch_batches)
        if type(caller).__name__ == "DataLoaderShard" and frame.f_code.co_name == "__iter__":
            return size
    return 0


def validates() -> bool:
    """Whether Lightning starts this pass for a validation; its sanity check leaves one open during training."""
    loops = (frame.f_locals.get("self") for frame in _frames_of(_LIGHTNING, _MORE_FRAMES))
    return any(type(loop).__name__ == "_EvaluationLoop" for loop in loops)


def refuses_empty() -> bool:
    """Whether Lightning makes a sampler, and refuses one without samples if other trainers have some."""
    for frame in _frames_of(_LIGHTNING, _MORE_FRAMES):
        module = getattr(getattr(frame.f_locals.get("self"), "trainer", None), "lightning_module", None)
        if module is not None:
            return not getattr(module, "allow_zero_length_dataloader_with_multiple_devices", False)
    return False


def leave_whole(dealt: bool) -> None:
    """Let accelerate's IterableDatasetShard, if it is a caller, pass on the samples of each trainer undivided."""
    for caller in callers():
        if type(caller).__name__ == "IterableDatasetShard":
            caller.batch_size, caller.split_batches = 1, False
            if dealt:
                caller.num_processes, caller.process_index = 1, 0


def counts_passes() -> bool:
    """Whether a loader of accelerate calls `set_epoch` when it starts a pass, with its own count of passes."""
    frame = next((frame for frame in _frames_above(2) if frame.f_code.co_name != "set_epoch"), None)
    caller = None if frame is None or frame.f_code.co_name != "__iter__" else frame.f_locals.get("self")
    return type(caller).__name__ in ("DataLoaderShard", "DataLoaderDispatcher")


def overfitting() -> StreamError:
    """Return the error that a stream cannot repeat the same batches."""
    return StreamError(
        "overfit_batches trains on the same batches in each epoch, but a stream gives each sample once. Record the "
        "samples (`record:` in the job file), and use overfit_batches with mpidata.RecordedDataset."
    )
