"""States of which each trainer holds a part, as with FSDP2, saved by torch.distributed.checkpoint.

Each trainer's file has its own pieces, as ``state/<name>``, and the index of all trainers' pieces, as
``sharded/<name>``. A trainer can therefore read its present part from all files, whatever the number of trainers was.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import pickle
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import torch
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.planner import LoadItemType, LoadPlan, LoadPlanner, SavePlan, SavePlanner
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult
from torch.distributed.tensor import DTensor
from torch.futures import Future

from mpidata.checkpoint.files import trainer_file
from mpidata.checkpoint.trainer_file import of_mate
from mpidata.errors import DAMAGED, StreamError, as_line

__all__ = ["ReadPiece", "has_parts", "load_pieces", "open_pieces", "save_pieces"]

ReadPiece = Callable[[int, int, int], bytes]
"""Returns bytes of a trainer's pieces, given its number in the checkpoint, the first byte and the number of bytes."""


class _Piece(NamedTuple):
    """Place of an object among the pieces of a trainer."""

    trainer: int
    first: int
    size: int


def has_parts(state: Any) -> bool:
    """Whether a state has a tensor of which this process holds a part."""
    if isinstance(state, Mapping):
        return any(map(has_parts, state.values()))
    if isinstance(state, (list, tuple)):
        return any(map(has_parts, state))
    return isinstance(state, DTensor)


def save_pieces(state: dict[str, Any]) -> tuple[bytes, bytes]:
    """Copy the part of a state that this trainer saves, and the index of the whole.

    Raises
    ------
    Exception
        Any exception that a trainer has raised.

    Notes
    -----
    Collective over the default process group. A tensor that all trainers have is saved by one of them.
    """
    writer = _Writer()
    try:
        metadata = save(state, storage_writer=writer)
    except CheckpointException as error:
        raise _first_of(error) from None
    return writer.pieces.getvalue(), pickle.dumps(metadata)


def load_pieces(state: dict[str, Any], index: bytes, read: ReadPiece) -> None:
    """Fill a state, whose tensors are the parts that this trainer has now, from the pieces of a checkpoint.

    Raises
    ------
    Exception
        The state has other tensors, or `read` raises.

    Notes
    -----
    Not collective. Uses pickle, as torch.load does.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")
        try:
            load(state, storage_reader=_Reader(pickle.loads(index), read), no_dist=True)
        except CheckpointException as error:
            raise _first_of(error) from None


@contextlib.contextmanager
def open_pieces(checkpoint: Path, name: str) -> Iterator[ReadPiece]:
    """Return a function that reads pieces of a state in a checkpoint's folder; it raises StreamError if that fails."""
    with contextlib.ExitStack() as stack:
        datasets: dict[int, h5py.Dataset] = {}
        each = 1  # number of ranks whose states are in one file

        def read(trainer: int, first: int, size: int) -> bytes:
            nonlocal each
            path = checkpoint / trainer_file(trainer // each)
            try:
                if not datasets:
                    path = checkpoint / trainer_file(0)
                    each = int(stack.enter_context(h5py.File(path, "r")).attrs.get("ranks_per_replica", 1))
                    path = checkpoint / trainer_file(trainer // each)
                if trainer not in datasets:
                    file = stack.enter_context(h5py.File(path, "r"))
                    datasets[trainer] = file[f"{of_mate(trainer % each)}state/{name}"]
                return bytes(datasets[trainer][first : first + size].tobytes())
            except DAMAGED as error:
                raise StreamError(f"{path} cannot be read: {as_line(error)}.") from None

        yield read


def _first_of(error: CheckpointException) -> BaseException:
    return error.failures[min(error.failures)][0]


def _done(result: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(result)
    return future


class _Writer(StorageWriter):
    """Concatenates pieces in memory."""

    def __init__(self) -> None:
        self.pieces = io.BytesIO()

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Do nothing."""

    def set_up_storage_writer(self, is_coordinator: bool, *_: Any, **__: Any) -> None:
        """Do nothing."""

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Return the plan unchanged."""
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Give each trainer's plan its number."""
        return [dataclasses.replace(plan, storage_data=trainer) for trainer, plan in enumerate(plans)]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Copy the items of the plan."""
        return _done([self._write(plan.storage_data, item.index, planner.resolve_data(item)) for item in plan.items])

    def _write(self, trainer: int, index: Any, data: torch.Tensor | io.BytesIO) -> WriteResult:
        first = self.pieces.tell()
        if isinstance(data, torch.Tensor):
            torch.save(data.detach().cpu().clone(), self.pieces)  # of a view torch would save the whole storage
        else:
            self.pieces.write(data.getbuffer())
        size = self.pieces.tell() - first
        return WriteResult(index, size, _Piece(trainer, first, size))

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Add the places of all pieces to the index."""
        metadata.storage_data = {one.index: one.storage_data for of_trainer in results for one in of_trainer}

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Return False: there is no id."""
        return False


class _Reader(StorageReader):
    """Reads what a plan needs."""

    def __init__(self, metadata: Metadata, read: ReadPiece) -> None:
        self._metadata, self._read = metadata, read

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Do nothing."""

    def read_metadata(self, *_: Any, **__: Any) -> Metadata:
        """Return the index."""
        return self._metadata

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *_: Any, **__: Any) -> None:
        """Do nothing."""

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """Return the plan unchanged."""
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """Return the plans unchanged."""
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Copy each piece, or the required part of it, to its place."""
        for item in plan.items:
            contents = io.BytesIO(self._read(*self._metadata.storage_data[item.storage_index]))
            if item.type == LoadItemType.BYTE_IO:
                planner.load_bytes(item, contents)
                continue
            piece = torch.load(contents, map_location="cpu", weights_only=True)
            for dimension, (first, length) in enumerate(zip(item.storage_offsets, item.lengths, strict=True)):
                piece = piece.narrow(dimension, first, length)
            target = planner.resolve_tensor(item).detach()
            target.copy_(piece)
            planner.commit_tensor(item, target)
        return _done(None)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Return False: there is no id."""
        return False
