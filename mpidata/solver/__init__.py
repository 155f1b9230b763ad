"""Solvers written in Python: the calls of mpidata.h.

A complete solver::

    import mpidata

    for simulation in mpidata.solver.simulations():
        u = initial(**simulation.parameters)
        for step in range(100):
            u = advance(u, mpidata.solver.group())
            simulation.put(temperature=u)
            simulation.step(0.01 * (step + 1))

`simulation.id` is the id of the simulation, from 0, as in the run folder's `parameters.csv`.

Outside a job the program runs one simulation, whose parameters come from the environment (MPIDATA_PARAM_<NAME>, 0 if
unset), and drops the data.

When the job is stopping, `Simulation.step` raises `StopSimulation`, a subclass of SystemExit: the program leaves all
its loops and ends normally, with status 0. A program with more to do catches it around the outer loop.

When the training script has cancelled the simulation, `Simulation.put`, `Simulation.step` and `infer` raise
`SimulationCancelled`. In a job that cancels simulations, catch it within the loop and continue with the next one.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import sys
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from mpidata.errors import DeviceError, LibraryError, MpidataError, NotFiniteError, SimulationCancelled
from mpidata.native.library import check
from mpidata.native.loading import load_checked
from mpidata.native.uncaught import end_on_exception, fail
from mpidata.run.failsafe_output import keep_printing
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.solver.carried import attach, is_carried
from mpidata.solver.group_rank import GroupRank, StopSimulation
from mpidata.solver.infer import Answer, Wanted
from mpidata.solver.infer import infer as ask
from mpidata.solver.published import published_arrays
from mpidata.solver.simulation import Simulation

if TYPE_CHECKING:
    import numpy.typing as npt
    from mpi4py import MPI

__all__ = [
    "Answer",
    "Simulation",
    "SimulationCancelled",
    "StopSimulation",
    "finalize",
    "group",
    "infer",
    "published",
    "refresh",
    "simulations",
]

_rank: GroupRank | None = None


def simulations() -> Iterator[Simulation]:
    """Iterate over the simulations of this rank's group, one after another, until there are no more.

    Yields
    ------
    Simulation
        The current simulation, valid until the next one. After the last one this rank has left the job, as after
        `finalize`.

    Raises
    ------
    LibraryError
        The job cannot be joined, or ended with an error.

    Notes
    -----
    Collective over the group. The first use is collective over all ranks of the job, and initializes MPI if necessary.
    Sleeps until the scheduler has answered. After a loop was left early, another call continues it; once this program
    calls `finalize` or ends, other groups run the remaining simulations. A simulation that is left by break or return
    is complete; if sys.exit or another exception leaves it, the try has failed.
    """
    rank = joined()
    while not rank.finalized and rank.next():
        assert rank.current is not None
        try:
            yield rank.current
        except GeneratorExit:
            if not _is_unwound():  # but left by break or return, on purpose
                rank.within = False
            raise
    finalize()


def _is_unwound() -> bool:
    """Whether an exception, for example SystemExit, leaves the loop over the generator that calls this.

    The only sign is a traceback that refers to the frame. Called when the generator is closed.
    """
    try:
        loop = sys._getframe(2)
    except ValueError:
        return False
    return any(isinstance(thing, TracebackType) for thing in gc.get_referrers(loop))


def group() -> MPI.Intracomm:
    """Return the communicator of this rank's group, to use in place of MPI.COMM_WORLD; valid until `finalize`.

    In a carried program this is the MPI.COMM_WORLD of its own MPI.

    Raises
    ------
    LibraryError
        The job cannot be joined, or this rank has left it.

    Notes
    -----
    The first use is collective over all ranks of the job, like that of `simulations`.
    """
    rank = joined()
    if is_carried() and not rank.finalized:
        from mpi4py import MPI

        return MPI.COMM_WORLD
    if rank.communicator is None:
        raise LibraryError("This rank has left the job, so it has no group. Use group() before finalize().")
    return rank.communicator


def infer(inputs: Mapping[str, npt.ArrayLike], outputs: Mapping[str, Wanted]) -> Answer:
    """Send a question to an inference rank (`inference` in the job file), and return the answer.

    Parameters
    ----------
    inputs : mapping from str to array_like
        Arrays that its function gets, each of shape (rows, ...); any number of rows, also 0.
    outputs : mapping from str to ndarray or (shape, dtype)
        Arrays that the function must return: arrays to fill, or shapes (rows, ...) and dtypes of new ones.

    Returns
    -------
    Answer
        The arrays of `outputs` by name, and the `version` of the weights.

    Raises
    ------
    StopSimulation
        The job is stopping.
    SimulationCancelled
        The training script has cancelled the simulation.
    LibraryError
        The call is outside a simulation or in a job without `inference`, or an array does not fit. The job ends with
        this error.

    Notes
    -----
    Not collective: each rank may ask. Sleeps until the answer has arrived; samples are sent meanwhile.
    """
    return ask(joined(), inputs, outputs)


def refresh() -> int:
    """Get what a trainer has published since the last call (`mpidata.publish`): all of it, of one version.

    Returns
    -------
    int
        The version that all ranks of this group now have; 0 if nothing has been published yet, or there is no job.

    Raises
    ------
    StopSimulation
        The job is stopping.
    NotFiniteError
        A rank of the group has made a step with a time that is not finite: this try of the simulation has failed.
    LibraryError
        The job cannot be joined, or this rank has left it.

    Notes
    -----
    Collective over the group, anywhere between two steps, also outside a simulation. Sleeps until a trainer has
    answered: one round trip, and the transfer of the values.
    """
    rank = joined()
    return rank.refresh()


def published() -> dict[str, npt.NDArray[Any]]:
    """Return the published arrays, by name, as of this group's last `refresh`.

    Returns
    -------
    dict of str to ndarray
        Read-only views of the library's memory, valid until the next `refresh`: copy what you need for longer. bfloat16
        is a dtype with one field `bfloat16` of uint16. Empty before the first `mpidata.publish`.

    Notes
    -----
    Not collective. Nothing is copied.
    """
    return published_arrays(joined().library)


def finalize() -> None:
    """Close the simulation and leave the job. Collective over the group; sleeps until all samples are received."""
    if _rank is None or _rank.finalized:
        return
    _rank.finalized = True
    _rank.current = None
    _rank.communicator = None
    check(_rank.library, _rank.library.mpidata_finalize())


def joined() -> GroupRank:
    """Join the job as a solver, once; outside a job, as a separate group."""
    global _rank
    if _rank is None and is_carried():
        keep_printing()
        _rank = attach()
        end_on_exception(_rank.plan.folder if _rank.plan else None, _report)
        atexit.register(_finalize_at_exit, os.getpid())
    if _rank is None:
        from mpi4py import MPI

        run = RunFolder.here()
        plan = Plan.read(run.plan) if run else None
        if plan is not None:
            keep_printing()
        end_on_exception(plan.folder if plan else None, _report)
        library = load_checked()
        handle = ctypes.c_int()
        spawned = MPI.Comm.Get_parent() != MPI.COMM_NULL  # mpidata_init frees that
        check(library, library.mpidata_init_f(MPI.COMM_WORLD.py2f(), ctypes.byref(handle)))
        communicator = MPI.Comm.f2py(handle.value)
        assert isinstance(communicator, MPI.Intracomm)
        _rank = GroupRank(library, communicator, plan, MPI.COMM_WORLD.Get_rank(), spawned)
        atexit.register(_finalize_at_exit, os.getpid())
    return _rank


def _finalize_at_exit(process: int) -> None:
    if os.getpid() != process:  # a forked child
        return
    try:
        if _rank is not None and _rank.plan is not None and _rank.within and not _rank.finalized:
            _leave_within(_rank)
        finalize()
    except LibraryError as error:
        print(error, file=sys.stderr)
        if _rank is not None:
            _rank.end_job(None)
        fail()


def _leave_within(rank: GroupRank) -> None:
    """Fail the try of the simulation in which the program ends: by losing this rank, if the job can survive that."""
    what = "ended before the simulation was over, without mpidata.solver.finalize()"
    print(f"mpidata: {rank.place()}, {what}", file=sys.stderr, flush=True)
    if rank.communicator is not None and rank.communicator.Get_size() == 1 and not rank.may_die:
        rank.fail(rank.library.mpidata_fail_try, what)
        return
    rank.say_last_words(what)
    if not rank.may_die:
        rank.end_job(f"{rank.place()}, {what}. Let it come to the end of the loop over simulations().")
    fail()


def _report(error: BaseException, sentence: str) -> None:
    if _rank is None:
        return
    if isinstance(error, (NotFiniteError, DeviceError)) and _rank.may_die:
        _rank.end_raised(error)
    elif isinstance(error, LibraryError) and not isinstance(
        error, DeviceError
    ):  # which the library has reported itself
        _rank.end_job(None)
    elif isinstance(error, MpidataError):
        _rank.end_job(str(error))
    elif _rank.may_die:
        _rank.end_raised(error)
    else:
        _rank.end_job(f"{sentence}. {_rank.place()}. The traceback is in this rank's log.")
