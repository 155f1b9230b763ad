"""The weights that an inference rank passes to the function: those of a file, then published ones."""

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
    """Source of newer versions; the method of `Published`."""

    def newer_than(self, version: int) -> tuple[int, Tensors] | None:
        """Return newer weights, if there are any; the first result may be this version: there are none."""


class Published:
    """Published weights, over libmpidata.

    Parameters
    ----------
    library : Library
        Opened as an inference rank.
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        self._taken = structures.Taken()

    def newer_than(self, version: int) -> tuple[int, Tensors] | None:
        """Return weights newer than a version, or that version if there are none; None: requested, no answer yet."""
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
        The first weights; None: there are none yet.
    published : Newer or None
        Source of newer ones; None: there is none, because the function takes no weights.
    resumed : bool, default False
        Whether newer ones may be in the checkpoint, which is then found out first.
    """

    def __init__(self, tensors: Tensors | None, published: Newer | None = None, resumed: bool = False) -> None:
        self.tensors = tensors
        self.version = 0
        self._published = published
        self._heard = published is None or not resumed

    @property
    def there(self) -> bool:
        """Whether the function may be called with these weights."""
        return self._heard and self.tensors is not None

    def take_newer(self) -> None:
        """Use newer published weights; called between two batches."""
        if self._published and (found := self._published.newer_than(self.version)):
            self._heard = True
            if found[0] > self.version:
                self.version, self.tensors = found


def tensors_in(contents: memoryview) -> Tensors:
    """Return tensors over published contents, which libmpidata has checked; they keep the memory alive."""
    found: Tensors = {}
    for one in described_in(contents):
        dtype: torch.dtype = getattr(torch, one.dtype)
        size = torch.Size(one.shape).numel()
        values = contents[one.at : one.at + size * dtype.itemsize]
        whole = torch.frombuffer(values, dtype=dtype) if size else torch.empty(0, dtype=dtype, device="cpu")
        found[one.name] = whole.view(one.shape)
    return found
