"""The shim mpidata-rank, started by hand with a launcher's variables; no MPI."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from launch_job import JOIN, JOIN_AND_LEAVE, SOURCES, build_shim, clean_environment, make_plan  # noqa: E402


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory, require: Callable[[str], str]) -> Path:
    return build_shim(tmp_path_factory.mktemp("shim"), require("cc"))


def _start(
    shim: Path, run: Path, rank: int | None, size: int = 7, arguments: Sequence[str] = (), **more: str
) -> "subprocess.Popen[str]":
    variables = dict(more)
    if rank is not None:
        variables |= {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": str(size)}
    # Launchers give each rank a process group of its own.
    return subprocess.Popen(
        [str(shim), str(run), *arguments],
        env=clean_environment(**variables),
        stderr=subprocess.PIPE,
        text=True,
        process_group=0 if sys.version_info >= (3, 11) else None,
        start_new_session=sys.version_info < (3, 11),
    )


def _run(shim: Path, run: Path, rank: int | None, size: int = 7, **more: str) -> "subprocess.CompletedProcess[str]":
    process = _start(shim, run, rank, size, **more)
    _, stderr = process.communicate(timeout=20)
    return subprocess.CompletedProcess([], process.returncode, None, stderr)


def _record(run: Path, rank: int) -> dict[str, object]:
    record: dict[str, object] = json.loads((run / "exits" / f"rank-{rank:04d}").read_text())
    assert record.pop("pid")
    return record


_ENDED = {"exit": None, "signal": None, "joined": False, "silent_s": None, "told": False, "error": None}


def _wait_for(what: Callable[[], object]) -> None:
    deadline = time.monotonic() + 10
    while not what():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def test_the_source_is_short_and_needs_no_mpi() -> None:
    for source in SOURCES:
        text = source.read_text()
        assert "mpi.h" not in text and len(text.splitlines()) < 400


@pytest.mark.parametrize(
    ("rank", "role", "log"),
    [
        (0, "scheduler", "rank-0000-scheduler.log"),
        (1, "trainer", "rank-0001-trainer-0.log"),
        (2, "trainer", "rank-0002-trainer-1.log"),
        (3, "solver", "rank-0003-solver-0-0.log"),
        (4, "solver", "rank-0004-solver-0-1.log"),
        (5, "solver", "rank-0005-solver-1-0.log"),
        (6, "solver", "rank-0006-solver-1-1.log"),
    ],
)
def test_each_rank_runs_the_program_of_its_role(shim: Path, tmp_path: Path, rank: int, role: str, log: str) -> None:
    say = f'{JOIN_AND_LEAVE}; echo "$0 $MPIDATA_RUN $(pwd)"; echo error >&2; test ! -t 0 && ! read line'
    plan = make_plan(tmp_path, {name: ["sh", "-c", say, name] for name in ("scheduler", "trainer", "solver")})
    done = _run(shim, plan.run, rank)
    assert (done.returncode, done.stderr) == (0, "")
    assert (plan.run / "logs" / log).read_text() == f"{role} {plan.run} {tmp_path}\nerror\n"
    assert os.listdir(plan.run / "logs") == [log] and not os.listdir(plan.run / "exits")


def test_environment_of_a_trainer(shim: Path, tmp_path: Path) -> None:
    say = f'{JOIN_AND_LEAVE}; echo "$RANK $WORLD_SIZE $LOCAL_RANK $PYTHONUNBUFFERED $OMP_NUM_THREADS $EQUAL"'
    plan = make_plan(tmp_path, {"trainer": ["sh", "-c", say]}, {"OMP_NUM_THREADS": "3", "EQUAL": "a = b"})
    assert _run(shim, plan.run, 2, OMPI_COMM_WORLD_LOCAL_RANK="2").returncode == 0
    assert _run(shim, plan.run, 2, OMPI_COMM_WORLD_LOCAL_RANK="0").returncode == 0  # first rank of a second host
    assert _run(shim, plan.run, 2).returncode == 0
    log = (plan.run / "logs" / "rank-0002-trainer-1.log").read_text()
    assert log.splitlines() == ["1 2 1 1 3 a = b", "1 2 0 1 3 a = b", "1 2 1 1 3 a = b"]


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "-"),
        ({"OMPI_COMM_WORLD_LOCAL_SIZE": "7"}, "2 0"),
        ({"OMPI_COMM_WORLD_LOCAL_SIZE": "4"}, "-"),
        ({"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_NODES": "1"}, "2 0"),
        ({"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_NODES": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "7"}, "-"),
    ],
)
def test_trainers_look_like_the_processes_of_torchrun(
    shim: Path, tmp_path: Path, variables: dict[str, str], expected: str
) -> None:
    say = f'{JOIN_AND_LEAVE}; echo "$TORCHELASTIC_RUN_ID" "${{LOCAL_WORLD_SIZE--}}" $GROUP_RANK'
    plan = make_plan(tmp_path, dict.fromkeys(("trainer", "solver"), ["sh", "-c", say]))
    assert _run(shim, plan.run, 2, **variables).returncode == 0
    assert _run(shim, plan.run, 3, **variables).returncode == 0
    logs = [(plan.run / "logs" / name).read_text() for name in ("rank-0002-trainer-1.log", "rank-0003-solver-0-0.log")]
    assert logs == [f"{plan.run} {expected}\n", " -\n"]


@pytest.mark.parametrize(
    "variables",
    [
        {"PMIX_RANK": "3"},
        {"PMI_RANK": "3", "PMI_SIZE": "7"},
        {"SLURM_PROCID": "3", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "7"},
        {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "7", "SLURM_PROCID": "0", "SLURM_STEP_ID": "0"},
        {"PMIX_RANK": "3", "PMIX_NAMESPACE": "slurm.pmix.1.0", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "7"},
    ],
)
def test_rank_of_each_launcher(shim: Path, tmp_path: Path, variables: dict[str, str]) -> None:
    plan = make_plan(tmp_path, {})
    assert _run(shim, plan.run, None, **variables).returncode == 0
    assert os.listdir(plan.run / "logs") == ["rank-0003-solver-0-0.log"]


@pytest.mark.parametrize(
    "variables",
    [
        {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "5"},
        {"PMI_RANK": "0", "PMI_SIZE": "5"},
        {"SLURM_PROCID": "0", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "5"},
        {"PMIX_RANK": "0", "PMIX_NAMESPACE": "slurm.pmix.1.0", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "5"},
    ],
)
def test_a_wrong_number_of_ranks_is_refused(shim: Path, tmp_path: Path, variables: dict[str, str]) -> None:
    plan = make_plan(tmp_path, {})
    done = _run(shim, plan.run, None, **variables)
    assert done.returncode == 1
    assert re.fullmatch(r"mpidata: The launcher started 5 ranks, but the job has 7\. .* with -n 7, .*\n", done.stderr)
    assert not os.listdir(plan.run / "logs")


def test_only_rank_0_says_so(shim: Path, tmp_path: Path) -> None:
    plan = make_plan(tmp_path, {})
    done = _run(shim, plan.run, 1, size=5)
    assert (done.returncode, done.stderr) == (1, "")


def test_a_rank_that_cannot_write_its_log_says_so(shim: Path, tmp_path: Path) -> None:
    plan = make_plan(tmp_path, {})
    (plan.run / "logs" / "rank-0003-solver-0-0.log").mkdir()
    done = _run(shim, plan.run, 3)
    assert done.returncode == 1 and "rank-0003-solver-0-0.log: Is a directory." in done.stderr


@pytest.mark.parametrize("variables", [{}, {"SLURM_PROCID": "0"}, {"PMI_RANK": "two"}, {"PMI_RANK": "-1"}])
def test_no_rank_is_refused(shim: Path, tmp_path: Path, variables: dict[str, str]) -> None:
    done = _run(shim, make_plan(tmp_path, {}).run, None, **variables)
    assert done.returncode == 1 and "has no rank" in done.stderr and "mpirun" in done.stderr


def test_no_plan_is_refused(shim: Path, tmp_path: Path) -> None:
    done = _run(shim, tmp_path, 0)
    assert done.returncode == 1 and f"Cannot read {tmp_path}/private/plan: No such file" in done.stderr
    plan = tmp_path / "private" / "plan"
    plan.parent.mkdir()
    plan.write_text("mpidata-plan 1\nworld 7\ntrainers 2\ngroups 2\nranks_per_group 1\nfolder /\n")
    assert "no complete layout" in _run(shim, tmp_path, 0).stderr
    plan.write_text("mpidata-plan 2\n")
    assert "begins with 'mpidata-plan 2'" in _run(shim, tmp_path, 0).stderr


def test_a_bad_end_leaves_a_record_and_is_a_death_by_signal(shim: Path, tmp_path: Path) -> None:
    plan = make_plan(tmp_path, {"solver": ["sh", "-c", "exit 3"], "trainer": ["sh", "-c", "kill -SEGV $$"]})
    done = _run(shim, plan.run, 5)
    assert done.returncode == -signal.SIGKILL
    assert "exit status 3: rank 5 (a solver of group 1)." in done.stderr and "rank-0005-solver-1-0.log" in done.stderr
    expected = {"rank": 5, "role": "solver", "group": 1, "rank_in_group": 0, **_ENDED, "exit": 3}
    assert _record(plan.run, 5) == expected
    assert _run(shim, plan.run, 2).returncode == -signal.SIGKILL
    expected = {"rank": 2, "role": "trainer", "trainer": 1, **_ENDED, "signal": 11}
    assert _record(plan.run, 2) == expected
    assert sorted(os.listdir(plan.run / "exits")) == ["rank-0002", "rank-0005"]


def test_a_record_that_cannot_be_written_is_told_aside(
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


def test_a_program_that_could_not_join_is_quoted(shim: Path, tmp_path: Path) -> None:
    plan = make_plan(tmp_path, {"solver": ["sh", "-c", "echo 'mpidata: No coupling. Couple it.'; exit 3"]})
    assert _run(shim, plan.run, 3).returncode == -signal.SIGKILL
    said = "No coupling. Couple it. It is the program of rank 3 (a solver of group 0)."
    assert _record(plan.run, 3)["error"] == said


def test_a_program_that_ends_before_the_launcher_tells_all_to(
    shim: Path, tmp_path: Path, require: Callable[[str], str]
) -> None:
    """It is the cause, though its mpidata-rank, which a busy machine holds up here, hears of both at once."""
    endings = {3: "exit 3", 4: "kill -SEGV $$", 5: "kill -TERM $$", 6: "exit 143"}
    cases = "; ".join(f"{rank}) {ending};" for rank, ending in endings.items())
    plan = make_plan(tmp_path, {"solver": ["sh", "-c", f"case $OMPI_COMM_WORLD_RANK in {cases} esac"]})
    # This process stays the parent of mpidata-rank, as a launcher is.
    held_up = [require("strace"), "-D", "-o", "/dev/null", "--inject=rt_sigtimedwait:delay_enter=3000000", str(shim)]
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
        _wait_for(lambda rank=rank: rank.cmdline()[:1] == [str(shim)] and rank.children())
        (program,) = rank.children()
        _wait_for(lambda program=program: program.status() == psutil.STATUS_ZOMBIE)
        rank.send_signal(signal.SIGTERM)
    for process in processes:
        process.wait(timeout=20)
    assert [_record(plan.run, rank)["told"] for rank in endings] == [False, False, True, True]


@pytest.mark.parametrize("mpi, told", [("MPICH Version: 5.0.2", True), ("Open MPI v5.0.11", False)])
def test_a_launcher_of_pmix_for_an_mpi_without(
    tmp_path: Path, require: Callable[[str], str], mpi: str, told: bool
) -> None:
    shim = build_shim(tmp_path, require("cc"), mpi)
    plan = make_plan(tmp_path, {"solver": ["sh", "-c", "exit 16"]})
    done = _run(shim, plan.run, None, PMIX_RANK="3")
    assert done.returncode == -signal.SIGKILL
    assert (f"the MPI of libmpidata, {mpi}, may not" in done.stderr and "srun --mpi=pmi2" in done.stderr) is told


def test_a_program_that_cannot_start(shim: Path, tmp_path: Path) -> None:
    plan = make_plan(tmp_path, {"solver": ['./so"lver']})
    done = _run(shim, plan.run, 3)
    assert done.returncode == -signal.SIGKILL
    sentence = "Cannot start './so\"lver': No such file or directory. Program of rank 3 (a solver of group 0), in "
    assert sentence in done.stderr
    record = _record(plan.run, 3)
    assert record["exit"] == 127 and str(record["error"]).startswith(sentence)
    assert sentence in (plan.run / "logs" / "rank-0003-solver-0-0.log").read_text()


def test_asked_to_end(shim: Path, tmp_path: Path) -> None:
    plan = make_plan(
        tmp_path, {"solver": ["sleep", "60"], "trainer": ["sh", "-c", "trap 'exit 0' TERM; sleep 60 & wait"]}
    )
    log = plan.run / "logs"
    process = _start(shim, plan.run, 3)
    _wait_for(lambda: os.listdir(log))
    time.sleep(0.2)
    process.terminate()
    assert process.wait(10) == -signal.SIGKILL
    record = _record(plan.run, 3)
    assert record["signal"] == signal.SIGTERM and record["told"] is True
    process = _start(shim, plan.run, 1)
    _wait_for(lambda: len(os.listdir(log)) == 2)
    time.sleep(0.2)
    process.terminate()
    assert process.wait(10) == 0  # it ended in order
    assert os.listdir(plan.run / "exits") == ["rank-0003"]


def test_a_batch_system_that_ends_the_program_first(shim: Path, tmp_path: Path) -> None:
    plan = make_plan(tmp_path, {"solver": ["sh", "-c", "echo $$; exec sleep 60"]})
    log = plan.run / "logs" / "rank-0003-solver-0-0.log"
    process = _start(shim, plan.run, 3)
    _wait_for(lambda: log.exists() and log.read_text())
    os.kill(int(log.read_text()), signal.SIGTERM)
    _wait_for(lambda: _state(int(log.read_text())) in "Z?")
    process.terminate()
    assert process.wait(10) == -signal.SIGKILL
    record = _record(plan.run, 3)
    assert record["signal"] == signal.SIGTERM and record["told"] is True


def _state(pid: int) -> str:
    """As in /proc/PID/stat; `?` where there is no such process any more."""
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
def test_exit_0_without_leaving_the_job_is_a_bad_end(
    shim: Path, tmp_path: Path, rank: int, script: str, said: str
) -> None:
    plan = make_plan(tmp_path, {"solver": ["sh", "-c", script], "trainer": ["sh", "-c", script]})
    assert _run(shim, plan.run, rank).returncode == -signal.SIGKILL
    assert said in str(_record(plan.run, rank)["error"])


def test_sigusr1_ends_no_solver(shim: Path, tmp_path: Path) -> None:
    plan = make_plan(
        tmp_path, {"solver": ["sh", "-c", f"{JOIN_AND_LEAVE}; kill -USR1 $$; kill -USR1 $PPID; echo alive"]}
    )
    assert _run(shim, plan.run, 3).returncode == 0
    assert (plan.run / "logs" / "rank-0003-solver-0-0.log").read_text() == "alive\n"


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("victim", ["launcher", "shim"])
def test_nothing_outlives_launcher_or_shim(shim: Path, tmp_path: Path, victim: str) -> None:
    # The program has a child of its own, and both are deaf to what asks them to end.
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
    _wait_for(lambda: log.exists() and log.read_text().endswith("\n"))
    program, its_child = map(int, log.read_text().split())
    try:
        os.kill(launcher.pid if victim == "launcher" else shim_pid, signal.SIGKILL)
        _wait_for(lambda: not _alive(shim_pid) and not _alive(program))
        if victim == "launcher":  # a shim that is killed itself can do nothing for what the program started
            _wait_for(lambda: not _alive(its_child))
    finally:
        for pid in (its_child, launcher.pid):
            if _alive(pid):
                os.kill(pid, signal.SIGKILL)
        launcher.wait()
        launcher.stdout.close()


def test_python_says_its_last_words(shim: Path, tmp_path: Path) -> None:
    code = "import os; print('last words'); os.kill(os.getpid(), 9)"
    plan = make_plan(tmp_path, {"trainer": [shutil.which("python3") or sys.executable, "-c", code]})
    assert _run(shim, plan.run, 1).returncode == -signal.SIGKILL
    assert (plan.run / "logs" / "rank-0001-trainer-0.log").read_text() == "last words\n"
