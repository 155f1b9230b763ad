"""Join the job as a trainer, once per process, and leave it properly whatever happens."""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import sys
import threading
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from mpidata.errors import LibraryError, MpidataError, StreamError, unforeseen
from mpidata.loading.figures import PUSHES
from mpidata.loading.loader_process import refuse_here
from mpidata.loading.over_mpi import MpiLoaders
from mpidata.loading.transport import Loaders
from mpidata.native.library import Library, check
from mpidata.native.loading import load_checked
from mpidata.native.uncaught import end, end_on_exception, fail, say_own_errors
from mpidata.run.failsafe_output import keep_printing
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.servers.messages import join_everyone
from mpidata.trainer.elastic.ending import must_die
from mpidata.trainer.elastic.spare import prepare, wait_for_place
from mpidata.trainer.elastic.waiting import hold_by
from mpidata.trainer.served.link import Link
from mpidata.trainer.standalone.trainer import TRY, open_alone
from mpidata.trainer.trainer import Trainer

if TYPE_CHECKING:
    from mpidata.record.writer import Recorder

_JOINED = "MPIDATA_JOINED"  # process and run folder, for the programs that a trainer starts

_trainer: Trainer | None = None
_ended_by = "the script ended"
_exit_status: int | None = None  # of the script's sys.exit
_exits_in_loop = False
_join_lock = threading.Lock()


def join() -> Trainer:
    """Join the job as a trainer, or become one without a job under `mpidata try`; every call returns the same object.

    Raises
    ------
    StreamError
        This process is not part of a job, or its MPI lacks MPI_THREAD_MULTIPLE.
    LibraryError
        The job is not the planned one, or this rank is not one of its trainers.

    Notes
    -----
    The first call is collective over all ranks of the job. It initializes MPI if needed, and sleeps until all join.
    """
    global _trainer
    with _join_lock:
        if _trainer is None:
            _trainer = _join()
        return _trainer


@functools.cache
def loaders() -> Loaders:
    """Return the connection to the job's loaders, the same object at every call; joins the job as `join` does."""
    trainer = join()
    return trainer.loaders(functools.partial(MpiLoaders, trainer.library, trainer.raise_interrupt))


def _join() -> Trainer:
    refuse_here()
    if (folder := os.environ.get(TRY)) is not None:
        say_own_errors(Path.cwd())
        trainer = open_alone(Path(folder))
        trainer.begin()
        atexit.register(_close_at_exit, trainer, os.getpid())
        return trainer
    return _join_job()


def _join_job() -> Trainer:
    _refuse_children()
    run = RunFolder.here()
    if run is None:
        say_own_errors(Path.cwd())
        script = Path(sys.argv[0]).name if sys.argv[0].endswith(".py") else "train.py"
        raise StreamError(
            "This process is not part of a job (MPIDATA_RUN is not set), and only a job streams samples. Name the "
            "script under `trainers: program:` in a job file, and start the job with `mpidata run job.yaml`. To test "
            f"the script alone, use `mpidata try --made-up job.yaml {script}` for random samples like the job's, "
            f"or `mpidata try --record runs/NAME/1/record {script}` for recorded samples."
        )
    if (
        os.environ.get("TORCHELASTIC_RUN_ID", os.environ["MPIDATA_RUN"]) != os.environ["MPIDATA_RUN"]
    ):  # as set by the job
        raise StreamError(
            "torchrun has started this script, so RANK and WORLD_SIZE are not those of the job. Start the script "
            "with python in 'trainers.program': mpidata starts one process for each of 'trainers.ranks'."
        )
    plan = Plan.read(run.plan)
    from mpi4py import MPI

    keep_printing()
    end_on_exception(plan.folder, _report)
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        raise StreamError(
            "A trainer needs MPI_THREAD_MULTIPLE, but MPI was initialized without it. Import mpidata before other "
            "packages that initialize MPI, do not set mpi4py.rc.threads, or use an MPI built with thread support."
        )
    library, rank = load_checked(), MPI.COMM_WORLD.rank
    role, index, rank_in_group = plan.role_of(rank) if MPI.COMM_WORLD.size == plan.world else ("trainer", 0, 0)
    recorder = _recorder(plan, library, rank)  # first, because samples may arrive at once
    trainer = _join_as_mate(plan, library, index, rank_in_group) if role == "mate" else _join_as_trainer(plan, library)
    if plan.pinned and role != "mate":
        _lock_pages(trainer)
    if plan.servers:
        trainer.servers = Link(join_everyone(plan), functools.partial(library.mpidata_trainer_report, PUSHES.encode()))
        trainer.leaves.append(trainer.servers.leave)
    if recorder is not None:
        trainer.recorder = recorder
        trainer.checkpoints.record_first = recorder.flush
        recorder.start()
    if plan.trainer_spares:
        prepare(trainer)
    trainer.begin()
    os.environ[_JOINED] = f"{os.getpid()} {os.environ['MPIDATA_RUN']}"
    # Before MPI is finalized, by mpi4py after all of Python's own exit functions, or by a script.
    atexit.register(_close_at_exit, trainer, os.getpid())
    _close_before_exit(trainer, os.getpid())
    _note_exit_status()
    at_finalize = MPI.Comm.Create_keyval(delete_fn=lambda *_: trainer.close())
    MPI.COMM_SELF.Set_attr(at_finalize, None)
    if trainer.waits_for_place:
        wait_for_place(trainer)
    return trainer


def _join_as_trainer(plan: Plan, library: Library) -> Trainer:
    from mpi4py import MPI

    handle = ctypes.c_int()
    check(library, library.mpidata_trainer_open(MPI.COMM_WORLD.py2f(), ctypes.byref(handle)))
    hold_by(library.mpidata_trainer_hold)
    communicator = MPI.Comm.f2py(handle.value)
    assert isinstance(communicator, MPI.Intracomm)
    if plan.ranks_per_replica == 1:
        return Trainer(plan, library, communicator)
    from mpidata.trainer.replica.first_rank import FirstTrainer

    return FirstTrainer(plan, library, communicator)


def _lock_pages(trainer: Trainer) -> None:
    import torch

    try:
        if not torch.cuda.is_available():
            raise StreamError(
                "The job file has 'buffer.pinned: true', but torch has no CUDA or ROCm device here. Remove the key, or "
                "install torch for the GPU of this node; `mpidata doctor` prints what torch sees."
            )
        torch.cuda.init()  # type: ignore[no-untyped-call]
        check(trainer.library, trainer.library.mpidata_trainer_lock_pages(torch.cuda.current_device()))
    except MpidataError as error:
        trainer.begin()  # its thread reports to the scheduler
        trainer.fail(str(error))
        raise


def _join_as_mate(plan: Plan, library: Library, trainer: int, rank: int) -> Trainer:
    from mpi4py import MPI

    from mpidata.trainer.replica.mate import MateTrainer

    check(library, library.mpidata_mate_open(MPI.COMM_WORLD.py2f()))
    return MateTrainer(plan, library, trainer, rank)


def _refuse_children() -> None:
    """Raise StreamError in a program that a trainer started: MPI would see the same rank twice, and both would hang."""
    process, _, run = os.environ.get(_JOINED, "").partition(" ")
    if run and run == os.environ.get("MPIDATA_RUN") and process != str(os.getpid()):
        raise StreamError(
            f"This process, {os.getpid()}, was started by a trainer, process {process}, and has no part in the job "
            "itself: use the stream, the loaders and mpidata.init_process_group only in the trainer. Processes of "
            "multiprocessing (spawn, forkserver) run the script from the top: put the code that only the trainer "
            "should run under `if __name__ == '__main__':`."
        )


def _recorder(plan: Plan, library: Library, rank: int) -> Recorder | None:
    role, index, _ = plan.role_of(rank)
    if plan.record_path is None or role != "trainer":
        return None
    from mpidata.record.writer import Recorder

    return Recorder(plan, library, index)


def _report(_: BaseException, sentence: str) -> None:
    if _trainer is None:
        return
    if _trainer.plan.trainers_exceptions_lose:
        _trainer.library.mpidata_beat_at(f"raised {sentence}".encode(errors="replace"))  # for its exit note
    else:
        _trainer.fail(sentence)


def _close_before_exit(trainer: Trainer, process: int) -> None:
    """Also leave properly if a finished script or framework ends by `os._exit(0)`, which calls no exit functions."""
    from mpi4py import MPI

    leave = os._exit

    def close_and_leave(status: int) -> NoReturn:
        if status == 0 and os.getpid() == process and trainer.is_done():
            _close_at_exit(trainer, process)
            MPI.Finalize()
        leave(status)

    os._exit = close_and_leave


def _note_exit_status() -> None:
    """Make `sys.exit` note its status, which Python does not pass to exit functions."""
    leave = sys.exit

    def note_and_leave(status: Any = None, /) -> NoReturn:
        global _ended_by, _exit_status, _exits_in_loop
        _exits_in_loop = isinstance(_trainer, Trainer) and _trainer.passes > 0
        _exit_status = status if isinstance(status, int) else int(status is not None)
        _ended_by = f"the script ended by sys.exit({status!r:.100})" if status else _ended_by
        leave(status)

    sys.exit = note_and_leave


def _close_at_exit(trainer: Trainer, process: int) -> None:
    if os.getpid() != process:  # a forked child
        return
    try:
        if isinstance(trainer, Trainer) and must_die(trainer, _exits_in_loop, _exit_status or 0):
            end(_exit_status or 0)
        trainer.close(_ended_by)
    except LibraryError as error:
        fail(str(error))
    except Exception as error:  # else Python would wait in MPI_Finalize for ranks that wait for this one
        traceback.print_exc()
        fail(unforeseen("Leaving the job", error, "this log"))
