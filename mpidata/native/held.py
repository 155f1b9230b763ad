"""What libmpidata holds of constants, the fields that are put once a simulation."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mpidata.native.library import Library, check

__all__ = ["Held", "look"]


class Held(NamedTuple):
    """Which constants these are, the address of each field (None: no values), and their numbers as of a sample.

    A length that no constant has is -1.
    """

    simulation: int
    by_try: int
    values: list[int | None]
    numbers: npt.NDArray[np.int64]


def look(library: Library, address: int, n_fields: int, n_numbers: int) -> Held:
    """Look at constants to which the caller has a reference; valid as long as it has."""
    values, numbers = (ctypes.c_void_p * n_fields)(), np.zeros(n_numbers, np.int64)
    simulation, by_try = ctypes.c_int64(), ctypes.c_int64()
    results = (values, numbers.ctypes.data, ctypes.byref(simulation), ctypes.byref(by_try))
    check(library, library.mpidata_trainer_constants_look(address, *results))
    return Held(simulation.value, by_try.value, list(values), numbers)
