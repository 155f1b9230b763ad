"""The weights that an inference rank calls the function with: those of a file, then what trainers publish."""

from __future__ import annotations

import ctypes
from typing import Protocol

import torch

from mpidata.inference.function import Tensors
from mpidata.loading.over_mpi import parts_of
from mpidata.native import constants, structures
from mpidata.native.library import Library, check
from mpidata.native.structures import described_in

__all__ = ["Published", "Weights", "tensors_in"]


class Newer(Protocol):
    """Where newer versions come from; the method of `Published`."""

    def newer_than(self, version: int) -> tuple[int, Tensors] | None:
        """Take what is newer, if it is there; the first answer may be that there is nothing: this version."""


class Published:
    """What trainers publish, over libmpidata.

    Parameters
    ----------
    library : Library
        Opened as an inference rank.
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        self._taken = structures.Taken()

    def newer_than(self, version: int) -> tuple[int, Tensors] | None:
        """Take what is newer than a version, or the word that nothing is, if it has come; else it is asked for."""
        status = self._library.mpidata_loader_published(version, ctypes.byref(self._taken))
        if status == constants.ERR_AGAIN:
            return None
        check(self._library, status)
        if not self._taken.n_parts:
            return version, {}
        return self._taken.number, tensors_in(parts_of(self._taken, self._library)[0])


class Weights:
    """The weights that the function is called with, and their version.

    Parameters
    ----------
    tensors : dict of str to torch.Tensor or None
        Those to begin with; None: there are none yet.
    published : Newer or None
        Where newer ones come from; None: from nowhere, as the function takes none.
    resumed : bool, default False
        Whether newer ones may be in the checkpoint: then it is first heard whether there are any.
    """

    def __init__(self, tensors: Tensors | None, published: Newer | None = None, resumed: bool = False) -> None:
        self.tensors = tensors
        self.version = 0
        self._published = published
        self._heard = published is None or not resumed

    @property
    def there(self) -> bool:
        """Whether the function may be called with them."""
        return self._heard and self.tensors is not None

    def take_newer(self) -> None:
        """Take over what was published since; called between two batches."""
        if self._published and (found := self._published.newer_than(self.version)):
            self._heard = True
            if found[0] > self.version:
                self.version, self.tensors = found


def tensors_in(contents: memoryview) -> Tensors:
    """Make tensors over what was published, as libmpidata has checked it; they keep the memory alive."""
    found: Tensors = {}
    for one in described_in(contents):
        dtype: torch.dtype = getattr(torch, one.dtype)
        size = torch.Size(one.shape).numel()
        values = contents[one.at : one.at + size * dtype.itemsize]
        whole = torch.frombuffer(values, dtype=dtype) if size else torch.empty(0, dtype=dtype, device="cpu")
        found[one.name] = whole.view(one.shape)
    return found
