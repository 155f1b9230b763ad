"""The order of an epoch: a keyed permutation, computed when needed and never stored."""

from __future__ import annotations

import hashlib
import struct
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from mpidata.native.loading import load

__all__ = ["Permutation"]

_ROUNDS = 24
_FEWEST_BITS = 6  # with fewer, not all orders are equally frequent
_64_BITS = (1 << 64) - 1
_Numbers: TypeAlias = "npt.NDArray[np.int64]"


class Permutation:
    """Which row is at which place of an epoch.

    The cipher is VariablePhilox (Mitchell et al., Bandwidth-optimal random shuffling for GPUs, 2022) with 24 rounds,
    over the numbers with as many bits as n - 1 has, at least 6 (`mpidata_permute` in C). Its round
    keys are 24 little-endian 32-bit numbers: SHAKE-256 of seed, epoch and, if it is not 0, stream, each as 8
    bytes, little-endian. Results of at least n are enciphered again until they are below n.

    Parameters
    ----------
    n : int
        Number of rows.
    seed, epoch, stream : int
        The key; the lower 64 bits of each are used.

    Notes
    -----
    Only needs memory for the results. Works without the GIL; thread-safe.
    """

    def __init__(self, n: int, seed: int, epoch: int, stream: int = 0) -> None:
        self._n, self._bits = n, max(_FEWEST_BITS, (n - 1).bit_length())
        packed = b"".join(struct.pack("<Q", part & _64_BITS) for part in (seed, epoch, *([stream] if stream else [])))
        self.keys = np.frombuffer(hashlib.shake_256(packed).digest(4 * _ROUNDS), "<u4").astype(np.uint32)

    def rows(self, places: _Numbers) -> _Numbers:
        """Return the row at each place, both from 0 to n - 1.

        Parameters
        ----------
        places : ndarray of int64, shape (m,)
            In any order.

        Returns
        -------
        ndarray of int64, shape (m,)
        """
        return self._permute(places, backwards=False)

    def places(self, rows: _Numbers) -> _Numbers:
        """Return the place of each row: the inverse of `rows`."""
        return self._permute(rows, backwards=True)

    def _permute(self, values: _Numbers, backwards: bool) -> _Numbers:
        permuted = np.array(values, np.int64, order="C")
        call = load().mpidata_permute
        call(self.keys.ctypes.data, self.keys.size, self._n, self._bits, backwards, permuted.ctypes.data, permuted.size)
        return permuted
