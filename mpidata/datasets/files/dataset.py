"""FileDataset: rows of part files in batches, read and shuffled by the job's loaders."""

from __future__ import annotations

import functools
import hashlib
import itertools
import operator
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy.typing as npt
import torch
from torch.utils.data import IterableDataset

from mpidata.datasets.epochs.iteration import Iteration, Ready
from mpidata.datasets.epochs.position import Position
from mpidata.datasets.epochs.share_assignment import Dealing
from mpidata.datasets.epochs.share_assignment import share as deal
from mpidata.datasets.files.in_loaders import refuse_copy, refuse_loader
from mpidata.datasets.files.read_ahead import ReadAhead
from mpidata.datasets.files.remote_parts import Remote
from mpidata.device.prefetch import choose_prefetcher
from mpidata.errors import StreamError
from mpidata.loading.agreement import hashed, pack_agreement
from mpidata.loading.blocks import Shuffle, blocks_of
from mpidata.loading.columns import Choice, check_choice, compare_kinds
from mpidata.loading.figures import Tally
from mpidata.loading.formats.hive import key_and_name
from mpidata.loading.formats.readers import check_format
from mpidata.loading.part_messages import Files, pack_files
from mpidata.loading.parts import digest_of, find_parts
from mpidata.trainer import loader_access as job
from mpidata.trainer.frameworks.callers import counts_passes, leave_whole, overfits, validates
from mpidata.trainer.frameworks.preparation import teach_accelerate
from mpidata.trainer.frameworks.processes import check_processes
from mpidata.trainer.torch_loaders import refuse_pinning

__all__ = ["FileDataset"]

_numbers = itertools.count()
_SETTINGS = {"global_batch": "a batch_size times trainers of"}
_SLICE_S = 0.2


class FileDataset(IterableDataset[dict[str, torch.Tensor]]):
    """Batches of the rows of part files, each row exactly once per epoch.

    Create it in a program that `mpidata run` has started as a trainer, in a job with ``loaders:``. Outside a job this
    process reads the parts itself, and holds what it reads.

    Parameters
    ----------
    paths : str, Path or sequence of them
        Part files, shell patterns, or folders, which stand for all their files. All nodes must see them.
    batch_size : int
        Number of rows in a batch of one trainer.
    columns : str, sequence of str, mapping or None
        Names of columns, including those of folders like ``year=2019/``. Or a mapping from new names to a column, or to
        several columns of one dtype, which are stacked: ``{"x": ["a", "b"], "y": "c"}``. None: all columns of the
        files.
    transform : callable, optional
        Runs on the loaders, once for each row. It gets a dict of arrays, shape (rows, ...), and returns one with the
        same number of rows. For equal rows it must return equal results.
    reader : str, optional
        ``"module:function"``: gets a path and returns an iterator of dicts of arrays. Without it, the suffix of a file
        determines how it is read: .parquet, .arrow, .feather, .csv, .h5, .hdf5, .npy (one column, ``data``), .npz.
    shuffle : "rows", "parts" or None
        "rows": permute all rows; the loaders together hold them in memory. "parts": permute the parts in each epoch,
        and the rows within each block of `open_parts` parts; this does not shuffle all rows, and needs memory for only
        two such blocks. None: do not shuffle.
    open_parts : int
        Number of parts in a block, see `shuffle`.
    seed : int, optional
        Seed of the order; the default is the job's seed.
    drop_last : bool
        Drop the rows that do not fill a batch on all trainers. Otherwise they are divided evenly.
    pin_memory : bool
        Put batches into page-locked memory. No effect without CUDA.
    share : bool
        Divide each epoch among the trainers, which must all request the same data. Otherwise each trainer gets all
        rows.
    device : str, torch.device or int, optional
        Device of the batches, for example ``"cuda"``. They are copied while the loop works on earlier ones.
    device_prefetch : int
        With `device`: number of batches that are copied before the loop asks for them, 1 or 2.

    Raises
    ------
    StreamError
        The job has no loaders; there are no such parts, or no rows; a part cannot be read, or has other columns; there
        are fewer rows than trainers. During iteration: a value cannot become a tensor, or trainers request different
        rows.

    Notes
    -----
    Iteration yields dicts of tensors, shape (rows, ...), with the dtypes of the files, which are never converted. They
    are in CPU memory unless `device` is given. Each iteration is the next epoch, from 0, unless `set_epoch` selects
    another one. The row at a position depends only on the seed, the epoch and the position, not on the number of
    loaders or their deaths. Use the dataset directly, or through ``DataLoader(dataset, batch_size=None)``.

    The constructor waits for the loaders, which count the rows. Creating the first such object joins the job, which is
    collective; nothing else here is. For one thread. 8 batches are requested ahead of the training loop.
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
        *,
        device: str | torch.device | int | None = None,
        device_prefetch: int = 1,
    ) -> None:
        place = job.place()  # first, so that the job learns of refused arguments
        self._prefetcher = choose_prefetcher("FileDataset", device, device_prefetch, pin_memory=pin_memory)
        teach_accelerate(FileDataset, _undivided)
        batch_size, open_parts = _whole("batch_size", batch_size), _whole("open_parts", open_parts)
        _refuse(transform, reader, shuffle, seed)
        check_choice(columns)
        parts = find_parts(paths)
        for part in parts:
            check_format(part.path, reader)
        self._shuffle, self._open_parts, self._pin = shuffle, open_parts, pin_memory and torch.cuda.is_available()
        self._seed = place.seed if seed is None else int(seed)
        self._parts, self._columns = parts, [columns] if isinstance(columns, str) else columns
        self._order: list[str] | None = None
        given = {"batch_size": batch_size, "columns": columns, "shuffle": shuffle, "open_parts": open_parts}
        given |= {"parts": len(parts), "seed": seed, "drop_last": drop_last, "share": share}
        place.same_call("FileDataset", **given, device=device is not None, device_prefetch=device_prefetch)
        files = pack_files(Files(tuple(parts), columns, transform, reader))
        agreement = self._agreement(place, batch_size, drop_last) if share and place.trainers > 1 else b""
        self._remote = Remote(place.loaders, place.workers, place.retries, parts, files, agreement)
        self._tally = Tally(place.report, place.trainer == 0)
        place.when_leaving(self._tally.flush)
        self._counts = self._count()
        if transform is None:
            self._compare_parts()
        self._share, self._drop_last = share, drop_last
        self._batch_size = batch_size
        self._trainers = place.trainers
        trainer, trainers = (place.trainer, place.trainers) if share else (0, 1)
        self._dealing = Dealing(sum(self._counts), batch_size, trainer, trainers, drop_last)
        self._turns = place.turns
        self._ahead = ReadAhead(
            self._remote,
            self._dealing,
            lambda epoch: blocks_of(self._counts, self._shuffle, self._open_parts, self._seed, epoch),
        )
        self._position = Position("FileDataset")
        self._may_grow = share and place.members is not None
        place.hold(f"mpidata.FileDataset {next(_numbers)}", self)
        self._position.is_of_job("FileDataset")
        members, clear = place.members if share else None, self._ahead.clear
        self._living = deal(members, self._position, self._dealing, clear, clear)

    @property
    def dealt(self) -> bool:
        """Whether there are several trainers, each with its own batches."""
        return self._dealing.is_shared

    def __len__(self) -> int:
        """Return the number of this trainer's batches in an epoch, which is the same on all trainers."""
        return self._dealing.batches(self._position.epoch)

    def __iter__(self) -> Iteration:
        """Start the next epoch, or the one that was set, or continue from a loaded state.

        Raises StreamError if a DataLoader around this has the wrong settings.
        """
        check_processes(self._trainers)
        refuse_loader(self._batch_size, dealt=self.dealt)
        prefetcher = self._prefetcher(self._living is not None)  # the batches change when a trainer dies
        refuse_pinning(prefetcher is not None)
        if overfits():
            self._position.repeat()
        place = self._position.begin()
        epoch, first = self._position.epoch, self._position.batches
        self._tally.begin(epoch)
        self._dealing.begin(epoch)
        left = functools.partial(self._dealing.left, self._position)
        turn = self._turns.begin(self._share, self._living, validates(), left, self._position.text)
        length = functools.partial(self._dealing.batches, epoch)
        rest = length, place, self._tally, turn, None, self._living and self._living.end, prefetcher
        return _Epoch(self._batch, self._ahead, epoch, first, *rest)

    def set_epoch(self, epoch: int) -> None:
        """Make this the epoch of the next iteration. A position within this epoch, from a loaded state, is kept.

        Raises StreamError if the job was resumed within another epoch.
        """
        leave_whole(dealt=self.dealt)
        if not counts_passes():
            self._position.set_epoch(epoch)

    @property
    def resumed(self) -> tuple[int, int]:
        """Epoch and batch number from which a loaded state continues; (0, 0) if none was loaded."""
        return self._position.resumed

    def state_dict(self) -> dict[str, Any]:
        """Return the position in the epochs, after the last batch that was returned; a few numbers."""
        place = {"epoch": self._position.epoch, "batches": self._position.batches}
        dealt = self._dealing.dealt(self._position.epoch, self._may_grow)
        rows = {"rows": sum(self._counts)}
        return {"seed": self._seed, **place, **rows, **self._names_of_parts(), **self._kind(), **dealt}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a `state_dict()` with the next iteration.

        Raises
        ------
        StreamError
            The argument is not such a state, or the part files or settings differ. The number of trainers may differ if
            `batch_size` times trainers is the same, or in a job with `trainers.elastic`.
        """
        state = dict(state_dict) if isinstance(state_dict, Mapping) else {}
        numbers = [state.get(key) for key in ("seed", "epoch", "batches", "rows")]
        if not all(isinstance(number, int) for number in numbers) or not isinstance(state.get("dealt", []), list):
            raise StreamError(
                "load_state_dict: this is not a state of a FileDataset. Give what its state_dict() returned."
            )
        own = self._names_of_parts()
        same = state.get("parts") == own["parts"] or (
            state.get("named") == own["named"] and state.get("contents", "") == own.get("contents")
        )
        if not same or state["rows"] != sum(self._counts):
            raise StreamError(
                "load_state_dict: the part files are not those of the state: names, sizes or contents differ. Give "
                "the same parts, or start without the state."
            )
        other_trainers = self._may_grow or len(state.get("dealt", [])) > 1
        for key, value in self._kind().items():
            if key == "global_batch" and other_trainers:
                continue
            if state.get(key, value if key == "drop_last" else None) != value:  # old states have no drop_last
                raise StreamError(
                    f"load_state_dict: the state has {_SETTINGS.get(key, key)} {state.get(key)}, but this FileDataset "
                    f"has {value}. Load the state with the settings that it was made with."
                )
        self._dealing.take(state)
        self._position.load(state, "a FileDataset", self._dealing.batches(state["epoch"]))
        self._seed = state["seed"]
        self._ahead.clear()

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled."""
        refuse_copy()

    def _kind(self) -> dict[str, Any]:
        open_parts = self._open_parts if self._shuffle == "parts" else 0
        return {
            "shuffle": self._shuffle,
            "open_parts": open_parts,
            "global_batch": self._dealing.global_batch,
            "drop_last": self._drop_last,
        }

    def _names_of_parts(self) -> dict[str, str]:
        """Return hashes of the part files' names, sizes and mtimes, and of their contents if known for all."""
        digests = {"parts": digest_of(self._parts), "named": digest_of(self._parts, times=False)}
        found = [self._remote.counted.get(number) for number in range(len(self._parts))]
        contents = hashlib.blake2b(b"".join(part.contents for part in found if part), digest_size=16).hexdigest()
        return digests | ({"contents": contents} if None not in found else {})

    def _agreement(self, place: job.Place, batch_size: int, drop_last: bool) -> bytes:
        names = [os.path.basename(part.path) for part in self._parts]
        shown = ", ".join(names[:3]) + (f", ... ({len(names)})" if len(names) > 3 else "")
        items = {
            "paths": hashed([(key_and_name(part.path), part.size) for part in self._parts], shown),
            **{"columns": self._columns, "batch_size": batch_size, "drop_last": drop_last, "shuffle": self._shuffle},
            **({"seed": self._seed} if self._shuffle is not None else {}),
            **({"open_parts": self._open_parts} if self._shuffle == "parts" else {}),
        }
        number = place.shared["FileDataset"]
        place.shared["FileDataset"] += 1
        return pack_agreement(f"FileDataset {number}", items)

    def _compare_parts(self) -> None:
        """Raise StreamError if the parts have different columns; parts without rows do not count."""
        kinds = {self._parts[n].path: of.kinds for n, of in sorted(self._remote.counted.items()) if of.rows}
        known = {path: own for path, own in kinds.items() if own is not None}
        if known:
            compare_kinds(known)
            self._order = list(self._columns or next(iter(known.values())))

    def _count(self) -> list[int]:
        """Wait until the loaders have counted the rows of the parts."""
        begun = time.monotonic()
        while not self._remote.ready:
            self._remote.take(_SLICE_S)
        self._remote.count()
        while None in self._remote.counts:
            self._remote.take(_SLICE_S)
            self._tell_of_parts()
        self._tally.wait(time.monotonic() - begun)
        if not any(self._remote.counts):
            raise StreamError(f"FileDataset: the {len(self._parts)} parts, first {self._parts[0].path}, have no rows.")
        self._tally.empty_parts(sum(of.rows == 0 for of in self._remote.counted.values()))
        return [count or 0 for count in self._remote.counts]

    def _tell_of_parts(self) -> None:
        counts = self._remote.counts
        counted = of = len(counts) - counts.count(None)
        if counted < len(counts):
            of = len(counts)
        elif self._shuffle != "rows":
            of = min(self._open_parts, of)
        self._tally.parts(min(counted, of), len(self._remote.read), of)

    def _batch(self, epoch: int, number: int, timeout_s: float) -> tuple[int, Callable[[], Any]] | None:
        """Wait for a batch; returns its number of rows and a function that makes it, or None after the timeout."""
        stretch = self._ahead.at(epoch, number)
        if stretch.owed:
            self._remote.take(timeout_s)
            self._tell_of_parts()
        if stretch.owed:
            return None
        tensors = stretch.batch(number, bool(self._remote.left_out))
        self._tally.read_again(len(self._remote.read_again))
        return len(next(iter(tensors.values()))), lambda: self._given(tensors)

    def _given(self, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        batch = {name: tensors[name] for name in self._order or tensors}
        return {name: tensor.pin_memory() for name, tensor in batch.items()} if self._pin else batch


class _Epoch(Iteration):
    """The batches of one epoch, from a given one on."""

    def __init__(
        self,
        batch: Callable[[int, int, float], tuple[int, Callable[[], Any]] | None],
        ahead: ReadAhead,
        epoch: int,
        first: int,
        *rest: Any,
    ) -> None:
        super().__init__(*rest)
        self._batch, self._ahead, self._epoch, self._number = batch, ahead, epoch, first

    def has_more(self) -> bool:
        """Whether the epoch has another batch."""
        return self._number < len(self)

    def wait(self) -> Ready:
        """Wait for the next batch."""
        while (came := self._came(_SLICE_S)) is None:
            pass
        return came

    def ready(self) -> Ready | None:
        """Return the next batch if it has arrived."""
        return self._came(0.0)

    def _came(self, timeout_s: float) -> Ready | None:
        if (batch := self._batch(self._epoch, self._number, timeout_s)) is None:
            return None
        self._number += 1
        return self._number - 1, *batch

    def ask(self) -> None:
        """Request more, if this batch was the last one of a request."""
        self._ahead.go_on(self._epoch, self._number - 1)


def _undivided(loader: Any, parts: int) -> Any:
    """Return a DataLoader around a FileDataset unchanged, if each trainer has its own batches; otherwise None."""
    return loader if loader.batch_size is None and loader.dataset.dealt else None


def _whole(name: str, value: Any) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = 0
    if number < 1:
        raise StreamError(f"FileDataset: {name} is {value!r}. Give a whole number, at least 1.")
    return number


def _refuse(transform: Any, reader: Any, shuffle: Any, seed: Any) -> None:
    if seed is not None and not hasattr(seed, "__index__"):
        raise StreamError(f"FileDataset: seed is {seed!r}. Give a whole number.")
    if shuffle not in ("rows", "parts", None):
        raise StreamError(f'FileDataset: shuffle is {shuffle!r}. Give "rows", "parts" or None.')
    if transform is not None and not callable(transform):
        raise StreamError(f"FileDataset: transform is {transform!r}, which is not callable. Give a function.")
    if reader is not None and (not isinstance(reader, str) or ":" not in reader):
        raise StreamError(f'FileDataset: reader is {reader!r}. Give "module:function".')
