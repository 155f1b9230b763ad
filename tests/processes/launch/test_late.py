"""The shim mpidata-rank reports a program that does not arrive in the job, once for all, with what it is doing."""

import json
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from launch_job import clean_environment, make_plan, pulse
from waiting import stays, wait_until

JOINED_AND_LEFT, ARRIVED = 7, 32

_WAITS = """
#include <stdio.h>
#include <unistd.h>
int {name}(void) {{ return pause(); }}
int main(void) {{ return puts("no mesh") < 0 || fflush(stdout) || {name}(); }}
"""


class _Ranks:
    """Shims of one run, each with the same program."""

    def __init__(
        self,
        shim: Path,
        folder: Path,
        program: list[str],
        ranks: list[int],
        allowed_s: float = 0.7,
        before: tuple[str, ...] = (),
        **more: str,
    ) -> None:
        programs = dict.fromkeys(("trainer", "solver", "scheduler"), program)
        self.run = make_plan(folder, programs, join_timeout_s=allowed_s).run
        self.processes = {
            rank: subprocess.Popen(
                [*before, str(shim), str(self.run)],
                env=clean_environment(OMPI_COMM_WORLD_RANK=str(rank), OMPI_COMM_WORLD_SIZE="7", **more),
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            for rank in ranks
        }

    def running(self) -> int:
        return sum(process.poll() is None for process in self.processes.values())

    def end(self, rank: int) -> tuple[int, dict[str, Any]]:
        process = self.processes[rank]
        process.communicate(timeout=30)
        record = self.run / "exits" / f"rank-{rank:04d}"
        return process.returncode, json.loads(record.read_text()) if record.exists() else {}

    def log(self, name: str) -> str:
        return (self.run / "logs" / name).read_text()


def _built(folder: Path, cc: str, name: str) -> str:
    (folder / "waits.c").write_text(_WAITS.format(name=name))
    subprocess.run([cc, "-g", "waits.c", "-o", "waits"], cwd=folder, check=True)
    return str(folder / "waits")


def test_late_solver_is_killed_and_reported_with_its_stack(
    shim: Path, tmp_path: Path, require: Callable[[str], str]
) -> None:
    require("gdb")
    ranks = _Ranks(shim, tmp_path, [_built(tmp_path, require("cc"), "wait_for_the_world")], [3])
    status, record = ranks.end(3)
    assert status == -signal.SIGKILL and (record["late"], record["told"], record["joined"]) == (True, False, False)
    said = record["error"]
    assert "The program of rank 3 (a solver of group 0) had not called mpidata_init 1 s after its start: it" in said
    assert "sleeps (state S" in said and "; its stack is in " in said and "launch.join_timeout_s" in said
    assert "The usual cause is a call on MPI_COMM_WORLD" in said and "'start: spawn'" in said
    log = ranks.log("rank-0003-solver-0-0.log")
    assert log.startswith("no mesh\nmpidata: Its stack when it was ended:\n#0 ") and " wait_for_the_world (" in log


def test_late_program_in_mpi_init_is_reported_as_waiting(
    shim: Path, tmp_path: Path, require: Callable[[str], str]
) -> None:
    require("gdb")
    ranks = _Ranks(shim, tmp_path, [_built(tmp_path, require("cc"), "MPI_Init")], [3])
    said = ranks.end(3)[1]["error"]
    assert "It is in MPI_Init, which waits for all ranks: another one has not" in said and "COMM_WORLD" not in said


def test_late_program_in_mpi_finalize_is_reported_as_ended(
    shim: Path, tmp_path: Path, require: Callable[[str], str]
) -> None:
    require("gdb")
    ranks = _Ranks(shim, tmp_path, [_built(tmp_path, require("cc"), "MPI_Finalize")], [3])
    said = ranks.end(3)[1]["error"]
    assert "; its output is in " in said and "It has ended and is in MPI_Finalize, which" in said
    assert "COMM_WORLD" not in said and ranks.log("rank-0003-solver-0-0.log") == "no mesh\n"


def test_late_trainer_is_reported_without_a_stack_if_gdb_is_missing(shim: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("sh", "sleep"):
        (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
    ranks = _Ranks(shim, tmp_path, ["sh", "-c", "while :; do :; done"], [1], PATH=str(tmp_path / "bin"))
    said = ranks.end(1)[1]["error"]
    assert "rank 1 (trainer 0) had not created an MPIStreamDataset 1 s after its start" in said
    assert "it computes, or waits without sleeping (state R" in said and "stack" not in said
    assert ranks.log("rank-0001-trainer-0.log") == ""


def test_late_rank_is_killed_and_recorded_on_a_full_disk(
    shim: Path, tmp_path: Path, require: Callable[[str], str]
) -> None:
    late = tmp_path / "run" / "exits" / "late"
    strace = (require("strace"), "-qq", "-o", str(tmp_path / "trace"))
    full = (*strace, "-P", str(late), "-e", "inject=openat:error=ENOSPC")
    ranks = _Ranks(shim, tmp_path, ["sleep", "60"], [3], before=full)
    status, record = ranks.end(3)
    assert (status, record["late"]) == (-signal.SIGKILL, True) and not late.exists()


def test_only_one_late_rank_is_reported_and_arrived_ranks_may_wait(shim: Path, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    late = _Ranks(shim, tmp_path / "a", ["sleep", "60"], [3, 4])
    (tmp_path / "b").mkdir()
    arrives = f'test "$OMPI_COMM_WORLD_RANK" = 0 || {pulse(ARRIVED)}'
    waits = ["sh", "-c", f"{arrives}; sleep 4; {pulse(JOINED_AND_LEFT)}"]
    arrived = _Ranks(shim, tmp_path / "b", waits, [0, 1, 4], allowed_s=2.5)  # a busy machine starts a shell in a second
    assert [arrived.end(rank) for rank in (0, 1, 4)] == [(0, {})] * 3
    wait_until(lambda: late.running() == 1)
    assert stays(lambda: late.running() == 1, 0.5)  # until the job is over, because the other one has ended it
    (late.run / "over").touch()
    records = [late.end(rank)[1] for rank in (3, 4)]
    assert sorted(record["told"] for record in records) == [False, True]
    assert [record.get("late") for record in sorted(records, key=lambda record: record["told"])] == [True, None]
