"""The simulation that a group runs: the calls of mpidata.h between two calls of next."""

from __future__ import annotations

import ctypes
import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mpidata.arrays import plain_number
from mpidata.dtypes import dtype_name
from mpidata.errors import NotFiniteError
from mpidata.native import constants
from mpidata.solver.device_arrays import DeviceArray
from mpidata.solver.maps import as_indices, known_map
from mpidata.solver.parameters import Parameters

if TYPE_CHECKING:
    from mpidata.solver.group_rank import GroupRank

__all__ = ["Simulation"]


class Simulation:
    """The current simulation of this rank's group.

    Attributes
    ----------
    id : int
        The id of the simulation, from 0, the same on all ranks of the group.
    parameters : dict of str to float or str
        The parameters by the job file's names; a str if the job file gives texts. Outside a job any name can be read.
    """

    def __init__(self, rank: GroupRank, identity: int) -> None:
        self.id = identity
        self.parameters: dict[str, Any] = Parameters(rank.library, rank.plan)
        self._of = rank

    @property
    def _rank(self) -> GroupRank:
        """The rank that runs it; refuses a call for a simulation that has ended, which would affect the next one."""
        if self._of.current is not self:
            what = f"Simulation {self.id} has ended, and its object was used again"
            self._of.misuse(constants.ERR_ORDER, what, "Use the current one of the loop over simulations().")
        return self._of

    def put(self, /, **fields: npt.ArrayLike) -> None:
        """Put whole fields into the current sample; exactly one rank of the group does this for each field.

        If the shape of a field contains the name of a length, the array is this rank's part. Parts are joined along
        that dimension, in the order of the ranks and of each rank's calls.

        Parameters
        ----------
        **fields : array_like
            Arrays of the declared shape (with any extent in place of a name) and dtype, or of a dtype that is
            converted: float64 to float32, float64 or float32 to float16 or bfloat16, complex128 to complex64. They are
            copied, from any memory order, also from a CUDA or HIP device, by DLPack or `__cuda_array_interface__`.
            bfloat16 is that of torch or ml_dtypes. Every field that can hold it accepts a Python int; float fields
            accept a Python float. Masked elements of floats become NaN.

        Raises
        ------
        LibraryError
            An undeclared field, a wrong shape or dtype, or a value that is not an array of plain numbers, for example
            because it has a unit, or masked elements that cannot be NaN. The job ends with this error, also if it is
            caught.

        Notes
        -----
        Not collective. Blocks only while `solvers.in_flight` samples are in flight. In a group of several ranks, an
        array without elements sends nothing, as in `put_block`.
        """
        for name, values in fields.items():
            array = self._rank.array(name, values)
            declared = self._rank.fields.get(name)
            may_be_none = self._rank.has_others or (declared is not None and bool(declared.length))
            if not (may_be_none and self._is_nothing(name, array)):
                self._send(self._rank.library.mpidata_put, name, array)

    def put_block(self, field: str, values: npt.ArrayLike, start: Sequence[int]) -> None:
        """Put this rank's block of a field; the blocks of all ranks cover the field exactly.

        Parameters
        ----------
        field : str
            Name of the field.
        values : array_like
            The block, as for `put`; it is copied. A block without elements, of any dtype and number of dimensions,
            sends nothing, and its start has no effect.
        start : sequence of int
            Indices, within the field, of the block's first element, one for each dimension.

        Raises
        ------
        LibraryError
            As for `put`, or the block is not within the field.

        Notes
        -----
        Not collective. Blocks only while `solvers.in_flight` samples are in flight.
        """
        array = self._rank.array(field, values)
        if not self._is_nothing(field, array):
            self._send(self._rank.library.mpidata_put_block, field, array, self._start(field, array, start))

    def put_at(self, field: str, values: npt.ArrayLike, indices: npt.ArrayLike) -> None:
        """Put rows of a field in any order: row i of the values is row indices[i] of the field.

        Parameters
        ----------
        field : str
            Name of the field.
        values : array_like
            The rows, as for `put`, along the dimension with the name of a length, or else along the first one. They
            are copied.
        indices : array_like of int
            Shape (rows,), from 0. All ranks together put each row exactly once. Trainers get equal indices once: the
            last 16 different arrays are recognized by their content.

        Raises
        ------
        LibraryError
            As for `put`, or the indices do not fit the values or the field. Not collective.
        """
        array, places = self._rank.array(field, values), as_indices(self._rank, field, indices)
        if array.size or places.size or not self._is_nothing(field, array):
            self._send(self._rank.library.mpidata_put_mapped, field, array, known_map(self._rank.library, places))

    def put_indices(self, field: str, values: npt.ArrayLike, indices: npt.ArrayLike | None = None) -> None:
        """Put this rank's part of a field that is declared with `index`, as local indices that count from `base`.

        Parameters
        ----------
        field : str
            Name of the field.
        values : array_like of int
            As for `put`.
        indices : array_like of int, optional
            Local index i, including ghost rows, is index indices[i] of the whole field; from 0. If omitted, the trainer
            adds the number of rows that the ranks before this one have put along the length of `index`.
        """
        array = self._rank.array(field, values)
        if not self._is_nothing(field, array):
            places = None if indices is None else as_indices(self._rank, field, indices)
            known = None if places is None else known_map(self._rank.library, places)
            self._send(self._rank.library.mpidata_put_indices, field, array, known)

    def iput(self, field: str, values: npt.NDArray[Any], start: Sequence[int] | None = None) -> None:
        """As `put_block`, or `put` without `start`, but without a copy: do not change the array before `wait` returns.

        An array that is not contiguous in C order, is converted, is bool or has masked elements is still copied.
        """
        array = self._rank.array(field, values)
        if (start is not None or self._rank.has_others) and self._is_nothing(field, array):
            return
        place = None if start is None else self._start(field, array, start)
        self._send(self._rank.library.mpidata_iput, field, array, place)
        if not isinstance(array, DeviceArray):  # these are refused
            self._rank.lent.append(array)

    def wait(self, values: npt.NDArray[Any] | None = None) -> None:
        """Sleep until every array that was passed to `iput` before the last `step` may be changed. Not collective.

        With `values`, wait only for this array; it need not have been passed to `iput`.
        """
        self._rank.wait(values)

    def step(self, time: float) -> None:
        """Commit the sample: everything put since the last step.

        Parameters
        ----------
        time : float
            Physical time of the sample, finite; that of the group's rank 0 counts.

        Raises
        ------
        StopSimulation
            The job is stopping.
        SimulationCancelled
            The training script has cancelled this simulation: continue with the next one. All ranks of the group get
            this at the same step; puts from then on raise it as well.
        LibraryError
            A field is missing, or the time is not a number. The job ends with this error.
        NotFiniteError
            The time is not finite: this try of the simulation has failed. Continue with the next simulation.

        Notes
        -----
        Collective over the group. Blocks only while `solvers.in_flight` samples are in flight.
        """
        try:
            number = plain_number(time)
        except Exception:  # any object may be passed
            self._rank.misuse(constants.ERR_ARGUMENT, f"step: the time is {time!r:.100}", "Pass a number.")
        status = self._rank.library.mpidata_step(number)
        if status == constants.END:
            self._rank.stop()
        if status == constants.ERR_ARGUMENT and not math.isfinite(number):
            self._rank.within = False
            raise NotFiniteError((self._rank.library.mpidata_last_error() or b"").decode())
        self._rank.put(status)
        self._rank.committed()

    def fail(self, reason: str) -> None:
        """Abandon this simulation, for example because it diverged; then leave its loop. Collective over the group."""
        self._rank.fail(self._rank.library.mpidata_fail, reason)

    def _is_nothing(self, field: str, array: npt.NDArray[Any] | DeviceArray) -> bool:
        """Whether a block has no elements; the library then gets an empty one that fits, and checks the rest."""
        if array.size:
            return False
        declared = self._rank.fields.get(field)
        ndim = len(declared.shape) if declared else 1
        if declared and declared.length:
            empty = np.empty(declared.extents({declared.length: 0}), array.dtype)
            self._send(self._rank.library.mpidata_put, field, empty)
        elif ndim:
            empty = np.empty((0,) * ndim, array.dtype)
            self._send(self._rank.library.mpidata_put_block, field, empty, _extents((0,) * ndim))
        return True

    def _send(self, function: Any, field: str, array: npt.NDArray[Any] | DeviceArray, *start: Any) -> None:
        dtype = constants.DTYPES[dtype_name(array.dtype)].number
        if isinstance(array, DeviceArray):
            self._rank.library.mpidata_device_stream(array.stream)
            address = array.address
            if not array.contiguous:
                function, start = self._strided(function, field, array, start)
        else:
            address = array.ctypes.data
        self._rank.put(function(field.encode(), address, dtype, array.ndim, _extents(array.shape), *start))

    def _strided(
        self, function: Any, field: str, array: DeviceArray, start: tuple[Any, ...]
    ) -> tuple[Any, tuple[Any, ...]]:
        library = self._rank.library
        if function not in (library.mpidata_put, library.mpidata_put_block):
            what = f"Field {field!r}: the elements of an array of a device are not contiguous"
            self._rank.misuse(constants.ERR_ARGUMENT, what, "Make it contiguous, in C order.")
        return library.mpidata_put_strided, (start[0] if start else None, _extents(array.strides))

    def _start(
        self, field: str, array: npt.NDArray[Any] | DeviceArray, start: Sequence[int]
    ) -> ctypes.Array[ctypes.c_int64]:
        try:
            first = [-1 if isinstance(index, bool) else operator.index(index) for index in start]
        except TypeError:
            first = []
        if len(first) != array.ndim or any(not 0 <= index < 1 << 63 for index in first):
            what = f"Field {field!r}: the block has {array.ndim} dimensions but start is {start!r:.100}"
            self._rank.misuse(constants.ERR_ARGUMENT, what, "Give one index per dimension, a whole number from 0.")
        return _extents(first)


def _extents(numbers: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * len(numbers))(*numbers)
