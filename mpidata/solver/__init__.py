"""Solvers written in Python: the calls of mpidata.h.

A complete solver::

    import mpidata

    for simulation in mpidata.solver.simulations():
        u = initial(**simulation.parameters)
        for step in range(100):
            u = advance(u, mpidata.solver.group())
            simulation.put(temperature=u)
            simulation.step(0.01 * (step + 1))

`simulation.id` is the number of the simulation, from 0, by which it is found in the run folder's `parameters.csv`.

Started outside a job it runs one simulation, whose parameters come from the environment (MPIDATA_PARAM_<NAME>, 0 where
unset), and drops the data.

When the job is stopping, `Simulation.step` raises `StopSimulation`, a kind of SystemExit: the program leaves all its
loops and ends in order, with status 0. A program with more to do catches it around the outer loop.

When the training has cancelled the simulation, `Simulation.put`, `Simulation.step` and `infer` raise
`SimulationCancelled`: a program of a job that cancels catches it within the loop, and goes on with the next
simulation.
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
    """Run the simulations of this rank's group, one after the other, until there are no more.

    Yields
    ------
    Simulation
        Valid until the next one. After the last one this rank has left the job, as after `finalize`.

    Raises
    ------
    LibraryError
        The job cannot be joined, or ended with an error.

    Notes
    -----
    Collective over the group. The first use is collective over all ranks of the job and initialises MPI if need be.
    Sleeps until the scheduler has answered. A loop that is left early may be taken up again with another call; what is
    left goes to other groups once this program calls `finalize`, or ends. A simulation that was left by break or return
    is complete then; one that sys.exit or another exception has left has failed that try.
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
    """Whether the loop over the generator that calls this is left by an exception, SystemExit say.

    Nothing else tells: a traceback refers to the frame then. Called when the generator is closed.
    """
    try:
        loop = sys._getframe(2)
    except ValueError:
        return False
    return any(isinstance(thing, TracebackType) for thing in gc.get_referrers(loop))


def group() -> MPI.Intracomm:
    """Communicator of this rank's group, to use in place of MPI.COMM_WORLD; valid until `finalize`.

    In a program that is no rank of the job this is the MPI.COMM_WORLD of its own MPI.

    Raises
    ------
    LibraryError
        The job cannot be joined, or this rank has left it.

    Notes
    -----
    The first use is collective over all ranks of the job, as that of `simulations`.
    """
    rank = joined()
    if is_carried() and not rank.finalized:
        from mpi4py import MPI

        return MPI.COMM_WORLD
    if rank.communicator is None:
        raise LibraryError("This rank has left the job, so it has no group. Use group() before finalize().")
    return rank.communicator


def infer(inputs: Mapping[str, npt.ArrayLike], outputs: Mapping[str, Wanted]) -> Answer:
    """Ask a rank that runs the model (`inference` in the job file).

    Parameters
    ----------
    inputs : mapping from str to array_like
        What its function gets, each of shape (rows, ...); any number of rows, also 0.
    outputs : mapping from str to ndarray or (shape, dtype)
        What it must return: arrays that are filled, or shapes (rows, ...) and dtypes of new ones.

    Returns
    -------
    Answer
        The arrays of `outputs` by name, and the `version` of the weights.

    Raises
    ------
    StopSimulation
        The job is stopping.
    SimulationCancelled
        The training has cancelled the simulation.
    LibraryError
        Outside a simulation, in a job without `inference`, or with arrays that do not fit. The job ends with it.

    Notes
    -----
    Not collective: each rank may ask. Sleeps until the answer is there; samples move meanwhile.
    """
    return ask(joined(), inputs, outputs)


def refresh() -> int:
    """Take over what a trainer has published since (`mpidata.publish`): all of it, of one version.

    Returns
    -------
    int
        The version that all ranks of this group have now; 0: nothing has been published yet, or there is no job.

    Raises
    ------
    StopSimulation
        The job is stopping.
    NotFiniteError
        A rank of the group has made a step at a time that is not finite: this try of the simulation has failed.
    LibraryError
        The job cannot be joined, or this rank has left it.

    Notes
    -----
    Collective over the group, at any point between two steps, and outside a simulation. Sleeps until a trainer has
    answered: one round trip, and the time that the values take.
    """
    rank = joined()
    return rank.refresh()


def published() -> dict[str, npt.NDArray[Any]]:
    """Get what was published, by name, as of this group's last `refresh`.

    Returns
    -------
    dict of str to ndarray
        Read-only views of the library's memory, valid until the next `refresh`: copy what is needed for longer.
        bfloat16 is a dtype with the one field `bfloat16` of uint16. Empty before the first `mpidata.publish`.

    Notes
    -----
    Not collective, and cheap: nothing is copied.
    """
    return published_arrays(joined().library)


def finalize() -> None:
    """Close the simulation and leave the job; once. Collective over the group; sleeps until all samples are taken."""
    if _rank is None or _rank.finalized:
        return
    _rank.finalized = True
    _rank.current = None
    _rank.communicator = None
    check(_rank.library, _rank.library.mpidata_finalize())


def joined() -> GroupRank:
    """Join the job as a solver, once; outside a job, as a group of its own."""
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
    """Fail this try of the simulation in which the program ends: by losing this rank, where the job can."""
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
