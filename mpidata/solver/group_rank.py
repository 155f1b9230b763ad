"""A rank of a solver group, from init to finalize: which simulation it runs, and how it leaves one."""

from __future__ import annotations

import ctypes
import sys
import time
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from mpidata.arrays import NotPlainError, plain_array
from mpidata.dtypes import array_dtype, dtype_name
from mpidata.errors import MpidataError, NotFiniteError, SimulationCancelled, as_line
from mpidata.native import constants
from mpidata.native.library import Library, check
from mpidata.native.uncaught import describe
from mpidata.run.plan import Plan
from mpidata.solver.device_arrays import DeviceArray, device_array
from mpidata.solver.simulation import Simulation

if TYPE_CHECKING:
    from mpi4py import MPI

__all__ = ["GroupRank", "StopSimulation"]


class StopSimulation(SystemExit):
    """The job is stopping: leave the simulation and the program. If uncaught, it ends the program with status 0."""


class GroupRank:
    """A rank of a solver group from init to finalize: this process.

    `rank` is the rank in MPI_COMM_WORLD, which for a spawned group is the group's own.
    """

    def __init__(
        self,
        library: Library,
        communicator: MPI.Intracomm | None,
        plan: Plan | None,
        rank: int = 0,
        spawned: bool = False,
    ) -> None:
        self.library = library
        self.rank = rank
        self.spawned = spawned
        self.communicator = communicator
        self.plan = plan
        self.fields = {field.name: field for field in plan.fields} if plan else {}
        self.current: Simulation | None = None
        self.steps = 0
        self.finalized = False
        self.within = False  # a simulation that is neither complete nor abandoned
        self.others_follow = False  # a function runs only on this rank of several
        # Arrays that belong to the library: of the current sample, and of those committed.
        self.lent: list[npt.NDArray[Any]] = []
        self._sent: list[npt.NDArray[Any]] = []

    def place(self) -> str:
        """Return what this rank is doing, for messages."""
        who = f"Solver rank {self.rank}"
        if self.spawned:
            who += " of a spawned group"
        elif self.plan:
            _, group, rank_in_group = self.plan.role_of(self.rank)
            who += f" (group {group}, its rank {rank_in_group})"
        if self.current is None:
            return f"{who}, outside a simulation"
        return f"{who}, simulation {self.current.id}, step {self.steps}"

    def end_job(self, sentence: str | None) -> None:
        """Report an error to the scheduler (None: already reported), which ends the job and with it this rank.

        Returns after 4 s if nothing happens, or at once outside a job. Dying earlier would also end the scheduler.
        """
        if sentence is not None:
            self.library.mpidata_report_error(sentence.encode())
        if self.plan is not None:
            time.sleep(constants.AFTER_ERROR_MS / 1e3)

    def misuse(self, status: int, what: str, advice: str) -> NoReturn:
        """Refuse a call as the library does: the job ends, and later calls fail; raises LibraryError.

        Parameters
        ----------
        status : int
            A status code, for example constants.ERR_ARGUMENT.
        what, advice : str
            What is wrong, without a period, and a sentence about what to do.
        """
        status = self.library.mpidata_misuse(status, what.encode(), advice.encode())
        if status == constants.END:
            self.stop()
        self.put(status)
        raise MpidataError(f"{what}. {advice}")

    def array(self, field: str, values: Any) -> npt.NDArray[Any] | DeviceArray:
        """Return the array to send for a field, contiguous or in device memory; refuses other values, as `misuse`."""
        declared = self.fields.get(field)
        if self.fields and declared is None:  # the library reports this better
            return np.empty(0)
        array: npt.NDArray[Any] | DeviceArray | None
        try:
            array = None if type(values) is np.ndarray else device_array(values)
        except Exception as error:  # any object may be put
            what = f"Field {field!r}: {type(values).__name__} was put, which gives no array ({as_line(error)})"
            self.misuse(constants.ERR_ARGUMENT, what, "Copy it to the memory of the host.")
        try:
            if array is None:
                array = plain_array(values, declared.dtype if declared else None)
        except NotPlainError as error:
            self.misuse(constants.ERR_ARGUMENT, f"Field {field!r}: {error.what} was put, {error.why}", error.advice)
        if not array.size:
            return np.empty(array.shape, array_dtype(declared.dtype) if declared else np.float64)
        dtype = array.dtype.newbyteorder("=")
        if dtype_name(dtype) not in constants.DTYPES:
            what = f"Field {field!r}: {dtype} was put, a dtype that no field has"
            fits = f"one of {', '.join(constants.DTYPES)}"
            if declared:
                what = f"Field {field!r} has dtype {declared.dtype}, but {dtype} was put"
                fits = " or ".join(dict.fromkeys((declared.dtype, *constants.CONVERSIONS.get(declared.dtype, ()))))
            self.misuse(constants.ERR_DTYPE, what, f"Convert it to {fits}.")
        return array if isinstance(array, DeviceArray) else np.require(array, dtype, ["C", "A"])

    @property
    def has_others(self) -> bool:
        """Whether the group has more ranks than this one."""
        return self.plan is not None and max(1, self.plan.carried) * self.plan.ranks_per_group > 1

    @property
    def may_die(self) -> bool:
        """Whether the end of this rank would now cost only a try of a simulation, and not the job."""
        survived = self.plan is not None and self.plan.fault_tolerance == "ulfm"
        return survived and not self.finalized and (self.current is not None or self.spawned)

    def try_failed(self, error: BaseException) -> None:
        """Fail this try because of an exception: the simulation is run again, and this rank continues with another."""
        traceback.print_exception(error)
        self.fail(self.library.mpidata_fail_try, self.say_raised(error))

    def say_raised(self, error: BaseException) -> str:
        """Write one line about an exception to the log; returns its description: `raised ValueError: ...`."""
        what = f"raised {describe(error, self.plan.folder if self.plan else None)}"
        print(f"mpidata: {self.place()}, {what}", file=sys.stderr, flush=True)
        return what

    def end_raised(self, error: BaseException) -> None:
        """Report that an exception ends this process, to the log and to its supervisor, here mpidata-rank."""
        self.library.mpidata_beat_at(self.say_raised(error).encode(errors="replace"))

    def say_last_words(self, what: str) -> None:
        """Report to the supervisor why this rank ends, if no exit status does; here the exit status does."""

    def next(self) -> bool:
        """Start the next simulation; False when there are no more."""
        if self._sent:
            self.wait()
        self.current, self.within = None, False
        identity = ctypes.c_int64()
        status = self.library.mpidata_next(ctypes.byref(identity))
        if status == constants.END:
            return False
        check(self.library, status)
        self.steps = 0
        self.current, self.within = Simulation(self, identity.value), True
        return True

    def refresh(self) -> int:
        """Get what is published; raises StopSimulation if the job is stopping."""
        if self.others_follow:
            what = "refresh was called by a function that runs on one rank of its group"
            advice = "Give the function an argument `group`: it runs on all ranks then, which call refresh together."
            self.misuse(constants.ERR_ORDER, what, advice)
        version = ctypes.c_int64()
        status = self.library.mpidata_refresh(ctypes.byref(version))
        if status == constants.END:
            self.stop()
        if status == constants.ERR_ARGUMENT:  # from an earlier step
            self.within = False
            raise NotFiniteError((self.library.mpidata_last_error() or b"").decode())
        check(self.library, status)
        return version.value

    def fail(self, call: Callable[[bytes], int], reason: str) -> None:
        """Abandon the current simulation, or fail this try of it; raises StopSimulation if the job is stopping."""
        self.within = False
        status = call(reason.encode())
        if status == constants.END:
            self.stop()
        if status != constants.CANCELLED:  # which is not a failure
            check(self.library, status)

    def stop(self) -> NoReturn:
        """Raise StopSimulation, because the job is stopping."""
        self.within = False
        raise StopSimulation

    def put(self, status: int) -> None:
        """Check the status of a put, step or infer; raises SimulationCancelled if the simulation is cancelled."""
        if status == constants.CANCELLED:
            self.within = False
            raise SimulationCancelled(f"The training has cancelled simulation {self.current and self.current.id}.")
        check(self.library, status)

    def committed(self) -> None:
        """Count a step that has been committed."""
        self.steps += 1
        self._sent += self.lent
        self.lent = []

    def wait(self, values: npt.NDArray[Any] | None = None) -> None:
        """Wait until the arrays of committed samples, or one of them, may be reused."""
        if values is None:
            check(self.library, self.library.mpidata_wait())
            self._sent = []
        else:
            check(self.library, self.library.mpidata_wait_for(values.ctypes.data))
            self._sent = [array for array in self._sent if array.ctypes.data != values.ctypes.data]
