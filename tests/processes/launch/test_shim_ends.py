"""mpidata-rank, started by hand: the ends of its program, of the launcher, and its own; no MPI."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from launch_job import JOIN, JOIN_AND_LEAVE, build_shim, clean_environment, make_plan
from shim_run import ENDED, exit_note, run_rank, start_rank
from waiting import wait_until


def is_gone(process: int) -> bool:
    """Return whether a process has ended, even if the process that has inherited it does not wait for it."""
    try:
        return psutil.Process(process).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_failed_program_leaves_an_exit_note_and_its_rank_ends_by_sigkill(shim: Path, tmp_path: Path) -> None:
    plan = make_plan(tmp_path, {"solver": ["sh", "-c", "exit 3"], "trainer": ["sh", "-c", "kill -SEGV $$"]})
    done = run_rank(shim, plan.run, 5)
    assert done.returncode == -signal.SIGKILL
    assert "exit status 3: rank 5 (a solver of group 1)." in done.stderr and "rank-0005-solver-1-0.log" in done.stderr
    expected = {"rank": 5, "role": "solver", "group": 1, "rank_in_group": 0, **ENDED, "exit": 3}
    assert exit_note(plan.run, 5) == expected
    assert run_rank(shim, plan.run, 2).returncode == -signal.SIGKILL
    expected = {"rank": 2, "role": "trainer", "trainer": 1, **ENDED, "signal": 11}
    assert exit_note(plan.run, 2) == expected
    assert sorted(os.listdir(plan.run / "exits")) == ["rank-0002", "rank-0005"]


def test_unwritable_exit_note_is_reported_through_the_side_channel(
    shim: Path, tmp_path: Path, require: Callable[[str], str]
) -> None:
    aside = tmp_path / "aside"
    aside.touch()
    run = make_plan(tmp_path, {"trainer": ["sh", "-c", f"{JOIN}; exit 3"]}).run
    record = run / "exits" / "rank-0001"
    for call, reason in ("openat", "No space left on device"), ("write", "Input/output error"):
        error = "ENOSPC" if call == "openat" else "EIO"
        variables = clean_environment(OMPI_COMM_WORLD_RANK="1", OMPI_COMM_WORLD_SIZE="7", MPIDATA_ASIDE=str(aside))
        strace = [require("strace"), "-qq", "-o", str(tmp_path / "trace"), "-P", f"{record}.new"]
        command = [*strace, "-e", f"inject={call}:error={error}", str(shim), str(run)]
        subprocess.run(command, env=variables, timeout=20, start_new_session=True, stderr=subprocess.DEVNULL)
        assert list(record.parent.iterdir()) == []
        assert aside.read_text().splitlines()[-1] == (
            "mpidata: A program ended with exit status 3: rank 1 (trainer 0). Its output is in "
            f"{run}/logs/rank-0001-trainer-0.log. The exit note in {run}/exits cannot be written: {reason}."
        )


def test_error_of_a_program_that_could_not_join_is_in_the_exit_note(shim: Path, tmp_path: Path) -> None:
    plan = make_plan(tmp_path, {"solver": ["sh", "-c", "echo 'mpidata: No coupling. Couple it.'; exit 3"]})
    assert run_rank(shim, plan.run, 3).returncode == -signal.SIGKILL
    said = "No coupling. Couple it. It is the program of rank 3 (a solver of group 0)."
    assert exit_note(plan.run, 3)["error"] == said


def test_program_that_failed_before_sigterm_of_the_launcher_is_the_cause(
    shim: Path, tmp_path: Path, require: Callable[[str], str]
) -> None:
    """The program is the cause, although its mpidata-rank, which is delayed here, learns of both at once."""
    endings = {3: "exit 3", 4: "kill -SEGV $$", 5: "kill -TERM $$", 6: "exit 143"}
    cases = "; ".join(f"{rank}) {ending};" for rank, ending in endings.items())
    plan = make_plan(tmp_path, {"solver": ["sh", "-c", f"case $OMPI_COMM_WORLD_RANK in {cases} esac"]})
    # This process stays the parent of mpidata-rank, as a launcher is.
    held_up = [require("strace"), "-D", "-o", "/dev/null", "--inject=rt_sigtimedwait:delay_enter=60000000", str(shim)]
    processes = [
        subprocess.Popen(
            [*held_up, str(plan.run)],
            env=clean_environment(OMPI_COMM_WORLD_RANK=str(rank), OMPI_COMM_WORLD_SIZE="7"),
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for rank in endings
    ]
    for process in processes:
        rank = psutil.Process(process.pid)
        wait_until(lambda rank=rank: rank.cmdline()[:1] == [str(shim)] and rank.children())
        (program,) = rank.children()
        wait_until(lambda program=program: program.status() == psutil.STATUS_ZOMBIE)
        rank.send_signal(signal.SIGTERM)
        os.kill(_tracer(process.pid), signal.SIGKILL)  # ends the delay
    for process in processes:
        process.wait(timeout=20)
    assert [exit_note(plan.run, rank)["told"] for rank in endings] == [False, False, True, True]


def _tracer(pid: int) -> int:
    return int(Path(f"/proc/{pid}/status").read_text().partition("TracerPid:")[2].split()[0])


@pytest.mark.parametrize("number, told", [(signal.SIGKILL, False), (signal.SIGSEGV, True)])
def test_kill_after_sigterm_of_the_launcher_is_a_cause_but_a_crash_is_not(
    shim: Path, tmp_path: Path, number: int, told: bool
) -> None:
    """The others learn of a kill by the kernel before its mpidata-rank does; a crash may be a consequence."""
    plan = make_plan(
        tmp_path, {"solver": ["sh", "-c", "trap 'echo told' TERM; echo $$; while :; do sleep 60 & wait; done"]}
    )
    log = plan.run / "logs" / "rank-0003-solver-0-0.log"
    process = start_rank(shim, plan.run, 3)
    wait_until(lambda: log.exists() and log.read_text())
    process.terminate()
    wait_until(lambda: "told" in log.read_text())
    os.kill(int(log.read_text().split()[0]), number)
    assert process.wait(10) == -signal.SIGKILL
    record = exit_note(plan.run, 3)
    assert record["signal"] == number and record["told"] is told


@pytest.mark.parametrize("mpi, told", [("MPICH Version: 5.0.2", True), ("Open MPI v5.0.11", False)])
def test_pmix_launcher_is_reported_for_an_mpi_without_pmix(
    tmp_path: Path, require: Callable[[str], str], mpi: str, told: bool
) -> None:
    shim = build_shim(tmp_path, require("cc"), mpi)
    plan = make_plan(tmp_path, {"solver": ["sh", "-c", "exit 16"]})
    done = run_rank(shim, plan.run, None, PMIX_RANK="3")
    assert done.returncode == -signal.SIGKILL
    assert (f"the MPI of libmpidata, {mpi}, may not" in done.stderr and "srun --mpi=pmi2" in done.stderr) is told


def test_program_that_cannot_start_is_recorded(shim: Path, tmp_path: Path) -> None:
    plan = make_plan(tmp_path, {"solver": ['./so"lver']})
    done = run_rank(shim, plan.run, 3)
    assert done.returncode == -signal.SIGKILL
    sentence = "Cannot start './so\"lver': No such file or directory. Program of rank 3 (a solver of group 0), in "
    assert sentence in done.stderr
    record = exit_note(plan.run, 3)
    assert record["exit"] == 127 and str(record["error"]).startswith(sentence)
    assert sentence in (plan.run / "logs" / "rank-0003-solver-0-0.log").read_text()


def test_sigterm_to_the_rank_ends_its_program(shim: Path, tmp_path: Path) -> None:
    plan = make_plan(
        tmp_path,
        {
            "solver": ["sh", "-c", "echo here; exec sleep 60"],
            "trainer": ["sh", "-c", "trap 'exit 0' TERM; echo here; sleep 60 & wait"],
        },
    )
    logs = plan.run / "logs"
    process = start_rank(shim, plan.run, 3)
    wait_until(lambda: [log.read_text() for log in logs.iterdir()] == ["here\n"])
    process.terminate()
    assert process.wait(10) == -signal.SIGKILL
    record = exit_note(plan.run, 3)
    assert record["signal"] == signal.SIGTERM and record["told"] is True
    process = start_rank(shim, plan.run, 1)
    wait_until(lambda: [log.read_text() for log in logs.iterdir()] == ["here\n"] * 2)
    process.terminate()
    assert process.wait(10) == 0  # the program ended in order
    assert os.listdir(plan.run / "exits") == ["rank-0003"]


def test_program_terminated_before_its_rank_by_a_batch_system_is_not_the_cause(shim: Path, tmp_path: Path) -> None:
    plan = make_plan(tmp_path, {"solver": ["sh", "-c", "echo $$; exec sleep 60"]})
    log = plan.run / "logs" / "rank-0003-solver-0-0.log"
    process = start_rank(shim, plan.run, 3)
    wait_until(lambda: log.exists() and log.read_text())
    os.kill(int(log.read_text()), signal.SIGTERM)
    wait_until(lambda: _state(int(log.read_text())) in "Z?")
    process.terminate()
    assert process.wait(10) == -signal.SIGKILL
    record = exit_note(plan.run, 3)
    assert record["signal"] == signal.SIGTERM and record["told"] is True


def _state(pid: int) -> str:
    """Return the state as in /proc/PID/stat, or `?` if the process no longer exists."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "?"


@pytest.mark.parametrize(
    ("rank", "script", "said"),
    [
        (3, "true", "rank 3 (a solver of group 0) ended with exit status 0 without calling mpidata_init"),
        (3, JOIN, "rank 3 (a solver of group 0) ended with exit status 0, but before mpidata_finalize"),
        (1, "true", "rank 1 (trainer 0) ended with exit status 0 without creating an MPIStreamDataset"),
        (1, "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-", "without creating an MPIStreamDataset"),
    ],
)
def test_exit_status_0_without_leaving_the_job_is_a_failure(
    shim: Path, tmp_path: Path, rank: int, script: str, said: str
) -> None:
    plan = make_plan(tmp_path, {"solver": ["sh", "-c", script], "trainer": ["sh", "-c", script]})
    assert run_rank(shim, plan.run, rank).returncode == -signal.SIGKILL
    assert said in str(exit_note(plan.run, rank)["error"])


def test_sigusr1_does_not_end_a_solver(shim: Path, tmp_path: Path) -> None:
    plan = make_plan(
        tmp_path, {"solver": ["sh", "-c", f"{JOIN_AND_LEAVE}; kill -USR1 $$; kill -USR1 $PPID; echo alive"]}
    )
    assert run_rank(shim, plan.run, 3).returncode == 0
    assert (plan.run / "logs" / "rank-0003-solver-0-0.log").read_text() == "alive\n"


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("victim", ["launcher", "shim"])
def test_nothing_outlives_launcher_or_shim(shim: Path, tmp_path: Path, victim: str) -> None:
    # The program has a child of its own, and both ignore signals that ask them to end.
    plan = make_plan(tmp_path, {"solver": ["sh", "-c", "trap '' TERM HUP; sleep 60 & echo $$ $!; wait"]})
    log = plan.run / "logs" / "rank-0003-solver-0-0.log"
    launch = (
        "import subprocess, sys; process = subprocess.Popen(sys.argv[1:], start_new_session=True);"
        "print(process.pid, flush=True); process.wait()"
    )
    environment = clean_environment(OMPI_COMM_WORLD_RANK="3", OMPI_COMM_WORLD_SIZE="7")
    command = [sys.executable, "-c", launch, str(shim), str(plan.run)]
    launcher = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert launcher.stdout is not None
    shim_pid = int(launcher.stdout.readline())
    wait_until(lambda: log.exists() and log.read_text().endswith("\n"))
    program, its_child = map(int, log.read_text().split())
    try:
        os.kill(launcher.pid if victim == "launcher" else shim_pid, signal.SIGKILL)
        wait_until(lambda: not _alive(shim_pid) and not _alive(program))
        if victim == "launcher":  # a shim that is killed cannot end what the program started
            wait_until(lambda: not _alive(its_child))
    finally:
        for pid in (its_child, launcher.pid):
            if _alive(pid):
                os.kill(pid, signal.SIGKILL)
        launcher.wait()
        launcher.stdout.close()


def test_last_output_of_python_before_sigkill_is_in_the_log(shim: Path, tmp_path: Path) -> None:
    code = "import os; print('last words'); os.kill(os.getpid(), 9)"
    plan = make_plan(tmp_path, {"trainer": [shutil.which("python3") or sys.executable, "-c", code]})
    assert run_rank(shim, plan.run, 1).returncode == -signal.SIGKILL
    assert (plan.run / "logs" / "rank-0001-trainer-0.log").read_text() == "last words\n"


def test_failed_rank_does_not_end_other_ranks_of_its_process_group(shim: Path, tmp_path: Path) -> None:
    """Slurm, for example, puts all ranks of a host into the process group of the first one."""
    left = tmp_path / "left"
    script = f"sleep 60 & echo $! >{left}; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; exit 3"
    other = f"{JOIN_AND_LEAVE}; echo here >{tmp_path}/other; sleep 2; echo done >{tmp_path}/other"
    plan = make_plan(tmp_path, {"trainer": ["sh", "-c", script], "solver": ["sh", "-c", other]})
    first = start_rank(shim, plan.run, 1)
    variables = clean_environment(OMPI_COMM_WORLD_RANK="5", OMPI_COMM_WORLD_SIZE="7")
    second = subprocess.Popen([shim, plan.run], env=variables, preexec_fn=lambda: os.setpgid(0, first.pid))
    wait_until(lambda: (tmp_path / "other").exists() and left.exists() and left.read_text())
    (tmp_path / "go").touch()
    assert first.wait(20) == -signal.SIGKILL and exit_note(plan.run, 1)["exit"] == 3
    wait_until(lambda: is_gone(int(left.read_text())))
    assert second.wait(20) != -signal.SIGKILL and (tmp_path / "other").read_text() == "done\n"


def test_failure_is_recorded_if_the_launcher_ignores_sigchld(shim: Path, tmp_path: Path) -> None:
    plan = make_plan(tmp_path, {"trainer": ["sh", "-c", "exit 3"]})
    variables = clean_environment(OMPI_COMM_WORLD_RANK="1", OMPI_COMM_WORLD_SIZE="7")
    command = ["env", "--ignore-signal=CHLD", str(shim), str(plan.run)]
    assert subprocess.run(command, env=variables, timeout=20, stderr=subprocess.DEVNULL).returncode == -signal.SIGKILL
    assert exit_note(plan.run, 1)["exit"] == 3
