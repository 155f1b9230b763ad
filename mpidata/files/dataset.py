"""FileDataset: rows of part files in batches, read and shuffled by the job's loaders."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy.typing as npt
import torch

from mpidata.errors import StreamError
from mpidata.files.ahead import Ahead
from mpidata.files.blocks import Shuffle, blocks_of
from mpidata.files.columns import Choice
from mpidata.files.messages import Files, pack_files
from mpidata.files.parts import digest_of, find_parts
from mpidata.files.readers import check_format
from mpidata.files.remote import Remote
from mpidata.loader.figures import Tally
from mpidata.loader.shares import Shares
from mpidata.trainer import place as job

__all__ = ["FileDataset"]

_numbers = itertools.count()
_SLICE_S = 0.2


class FileDataset:
    """Batches of the rows of part files, each row exactly once an epoch.

    To be created in a program that `mpidata run` has started as a trainer, in a job with ``loaders:``.

    Parameters
    ----------
    paths : str, Path or sequence of them
        Part files, patterns as of a shell, or folders, of which all files are taken. All nodes must see them.
    batch_size : int
        Rows in a batch of one trainer.
    columns : sequence of str, mapping or None
        Names of columns; or a mapping from new names to a column, or several that are stacked: ``{"x": ["a", "b"], "y":
        "c"}``. None: all.
    transform : callable, optional
        Runs on the loaders, once for each row: gets a dict of arrays, shape (rows, ...), and returns one with as many
        rows, the same whenever it is called.
    reader : str, optional
        ``"module:function"``: gets a path and returns an iterator of dicts of arrays. Otherwise the end of a file's
        name says how it is read: .parquet, .arrow, .feather, .csv, .h5, .hdf5, .npy (one column, ``data``), .npz.
    shuffle : "rows", "parts" or None
        All rows are permuted, which the loaders hold in memory together; or those of `open_parts` parts at a time, the
        parts in another order each epoch, which is no shuffle of all rows but needs memory for two such blocks only;
        or nothing.
    open_parts : int
        Parts that are held at once, see `shuffle`.
    seed : int, optional
        Of the order; the job's where it is left out.
    drop_last : bool
        Leave out the rows that do not fill a batch on all trainers. Otherwise they are dealt out evenly.
    pin_memory : bool
        Put batches into page-locked memory; without CUDA this changes nothing.
    share : bool
        Deal each epoch out to the trainers; otherwise each trainer gets all rows.

    Raises
    ------
    StreamError
        Not in a job with loaders; no such parts, one that cannot be read or has no rows; fewer rows than trainers.

    Notes
    -----
    Iteration gives dicts of tensors, shape (rows, ...). Each is the next epoch, from 0, unless `set_epoch` says which.
    What comes is a function of (seed, epoch, place): the same with any number of loaders, whatever
    became of them.

    The constructor waits for the loaders, who count the rows; creating the first such object joins the job, which is
    collective, and otherwise nothing here is. One thread. Of batches, 8 are ahead of the training loop.
    """

    def __init__(
        self,
        paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        batch_size: int,
        columns: Choice = None,
        transform: Callable[[dict[str, npt.NDArray[Any]]], Any] | None = None,
        reader: str | None = None,
        shuffle: Shuffle = "rows",
        open_parts: int = 8,
        seed: int | None = None,
        drop_last: bool = False,
        pin_memory: bool = False,
        share: bool = True,
    ) -> None:
        place = job.place()  # first: then the job hears of what is refused
        _refuse(batch_size, transform, reader, shuffle, open_parts)
        parts = find_parts(paths)
        for part in parts:
            check_format(part.path, reader)
        self._shuffle, self._open_parts, self._pin = shuffle, open_parts, pin_memory and torch.cuda.is_available()
        self._seed = place.seed if seed is None else seed
        self._digest = digest_of(parts)
        files = pack_files(Files(tuple(parts), columns, transform, reader))
        self._remote = Remote(place.loaders, place.workers, place.retries, parts, files)
        self._tally = Tally(place.report, place.trainer == 0)
        self._counts = self._count()
        self._share = share
        self._trainer, trainers = (place.trainer, place.trainers) if share else (0, 1)
        self._global_batch = batch_size * trainers
        self._shares = Shares(sum(self._counts), batch_size, trainers, drop_last)
        self._turns = place.turns
        self._ahead = Ahead(
            self._remote,
            self._shares,
            self._trainer,
            lambda epoch: blocks_of(self._counts, self._shuffle, self._open_parts, self._seed, epoch),
        )
        self._epoch = self._batches = self._next = 0
        self._kept = False
        self._resumed = (0, 0)
        place.hold(f"mpidata.FileDataset {next(_numbers)}", self)

    def __len__(self) -> int:
        """Count this trainer's batches in an epoch: the same on all."""
        return self._shares.batches

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        """Begin the next epoch, or the one that was set, or go on where a loaded state ends."""
        if not self._kept:
            self._epoch, self._batches = self._next, 0
        self._kept, self._next = False, self._epoch + 1
        return self._iterate(self._epoch)

    def set_epoch(self, epoch: int) -> None:
        """Make this the epoch of the next iteration. A place within the same epoch, from a loaded state, is kept."""
        self._kept = self._kept and epoch == self._epoch
        self._next = epoch

    @property
    def resumed(self) -> tuple[int, int]:
        """Epoch and number of the batch that a loaded state goes on from; (0, 0) where none was loaded."""
        return self._resumed

    def state_dict(self) -> dict[str, Any]:
        """Return the place in the epochs, after the batch that was given out last; a few numbers."""
        rows = sum(self._counts)
        return {"seed": self._seed, "epoch": self._epoch, "batches": self._batches, "rows": rows} | self._kind()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from a `state_dict()` with the next iteration.

        Raises
        ------
        StreamError
            It is no such state, or its part files or settings were others. The number of trainers may be another one
            where `batch_size` times trainers is the same.
        """
        state = dict(state_dict)
        numbers = [state.get(key) for key in ("seed", "epoch", "batches", "rows")]
        if not all(isinstance(number, int) for number in numbers):
            raise StreamError(
                "load_state_dict: this is no state of a FileDataset. Give what its state_dict() returned."
            )
        if state.get("parts") != self._digest or state["rows"] != sum(self._counts):
            raise StreamError(
                "load_state_dict: the part files are not those of the state: names, sizes or times are others. Give "
                "the same parts, or begin anew without the state."
            )
        for key, own in self._kind().items():
            if state.get(key) != own:
                raise StreamError(
                    f"load_state_dict: the state has {key} {state.get(key)}, but this FileDataset has {own}. Load it "
                    "with the settings that it was made with."
                )
        self._seed, self._epoch, self._batches = state["seed"], state["epoch"], state["batches"]
        if self._batches >= len(self):
            self._epoch, self._batches = self._epoch + 1, 0
        self._ahead.clear()
        self._kept, self._next, self._resumed = True, self._epoch, (self._epoch, self._batches)

    def _kind(self) -> dict[str, Any]:
        open_parts = self._open_parts if self._shuffle == "parts" else 0
        kind = {"shuffle": self._shuffle, "open_parts": open_parts, "global_batch": self._global_batch}
        return {"parts": self._digest, **kind}

    def _count(self) -> list[int]:
        """Wait for the loaders, who count the rows of the parts."""
        begun = time.monotonic()
        while not self._remote.ready:
            self._remote.take(_SLICE_S)
        self._remote.count()
        while None in self._remote.counts:
            self._remote.take(_SLICE_S)
            self._tell_of_parts()
        self._tally.wait(time.monotonic() - begun)
        return [count or 0 for count in self._remote.counts]

    def _tell_of_parts(self) -> None:
        counts = self._remote.counts
        counted = of = len(counts) - counts.count(None)
        if counted < len(counts):
            of = len(counts)
        elif self._shuffle != "rows":
            of = min(self._open_parts, of)
        self._tally.parts(min(counted, of), len(self._remote.read), of)

    def _iterate(self, epoch: int) -> Iterator[dict[str, torch.Tensor]]:
        self._tally.begin(epoch)
        try:
            yield from self._batches_of(epoch)
            self._tally.end()
        finally:  # of a loop that is left, too
            self._tally.flush()

    def _batches_of(self, epoch: int) -> Iterator[dict[str, torch.Tensor]]:
        turn = self._turns.begin(together=self._share)
        for number in range(self._batches, len(self)):
            turn.next()
            begun = time.monotonic()
            stretch = self._ahead.at(epoch, number)
            while stretch.owed:
                self._remote.take(_SLICE_S)
                self._tell_of_parts()
            tensors = stretch.batch(number, bool(self._remote.left_out))
            self._ahead.go_on(epoch, number)
            self._epoch, self._batches = epoch, number + 1
            self._tally.read_again(len(self._remote.read_again))
            rows = len(next(iter(tensors.values())))
            self._tally.batch(rows, time.monotonic() - begun)
            turn.given()
            yield {name: tensor.pin_memory() for name, tensor in tensors.items()} if self._pin else tensors
        turn.end()


def _refuse(batch_size: Any, transform: Any, reader: Any, shuffle: Any, open_parts: Any) -> None:
    for name, value in (("batch_size", batch_size), ("open_parts", open_parts)):
        if not isinstance(value, int) or value < 1:
            raise StreamError(f"FileDataset: {name} is {value!r}. Give a whole number, at least 1.")
    if shuffle not in ("rows", "parts", None):
        raise StreamError(f'FileDataset: shuffle is {shuffle!r}. Give "rows", "parts" or None.')
    if transform is not None and not callable(transform):
        raise StreamError(f"FileDataset: transform is {transform!r}, which cannot be called. Give a function.")
    if reader is not None and (not isinstance(reader, str) or ":" not in reader):
        raise StreamError(f'FileDataset: reader is {reader!r}. Give "module:function".')
