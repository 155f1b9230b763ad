"""The order of an epoch: a keyed permutation, computed where it is needed and never stored."""

from __future__ import annotations

import hashlib
import struct
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Permutation"]

_ROUNDS = 24
_FEWEST_BITS = 6  # with fewer, not all orders are equally frequent
_MULTIPLIER = np.uint64(0xD2B74407B1CE6E93)
_Words: TypeAlias = "npt.NDArray[np.uint64]"


class Permutation:
    """Which row is at which place of an epoch.

    The cipher is VariablePhilox (Mitchell et al., Bandwidth-optimal random shuffling for GPUs, 2021) with 24 rounds,
    over the least power of two that is not below n and 2^6. Its round keys are 24 little-endian 32-bit numbers:
    SHAKE-256 of seed and epoch, each as 8 bytes, little-endian. What falls outside n is enciphered again until it
    falls inside.

    Parameters
    ----------
    n : int
        Number of rows.
    seed, epoch : int
        The key; 64 bits of each count.

    Notes
    -----
    Takes no memory but that of what is asked for.
    """

    def __init__(self, n: int, seed: int, epoch: int) -> None:
        self._n = n
        bits = max(_FEWEST_BITS, (n - 1).bit_length())
        self._left = np.uint64(bits // 2)
        self._right = np.uint64(bits - bits // 2)
        self._left_mask = np.uint64((1 << bits // 2) - 1)
        self._right_mask = np.uint64((1 << (bits - bits // 2)) - 1)
        packed = struct.pack("<QQ", seed & 0xFFFFFFFFFFFFFFFF, epoch & 0xFFFFFFFFFFFFFFFF)
        keys = np.frombuffer(hashlib.shake_256(packed).digest(4 * _ROUNDS), "<u4")
        self._keys = keys.astype(np.uint64)

    def rows(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Tell the row at each place, both from 0 to n - 1.

        Parameters
        ----------
        places : ndarray of int64, shape (m,)
            In any order.

        Returns
        -------
        ndarray of int64, shape (m,)
        """
        rows = self._encipher(places.astype(np.uint64))
        while (outside := np.flatnonzero(rows >= self._n)).size:
            rows[outside] = self._encipher(rows[outside])
        return rows.astype(np.int64)

    def _encipher(self, values: _Words) -> _Words:
        left, right = values >> self._right, values & self._right_mask
        for key in self._keys:
            product = _MULTIPLIER * left
            high = (product >> np.uint64(32)) & np.uint64(0xFFFFFFFF)
            low = ((product & np.uint64(0xFFFFFFFF)) << (self._right - self._left)) | (right >> self._left)
            left, right = (high ^ key ^ right) & self._left_mask, low & self._right_mask
        return (left << self._right) | right
