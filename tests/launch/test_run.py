"""`mpidata run` with the real mpirun and a job of shell scripts: its end, signals, and leftovers."""

import os
import re
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from launch_job import JOINED, Run, make_plan, write_job
from waiting import wait_until

from mpidata.errors import LaunchError
from mpidata.launch.watching.attempt import Attempt
from mpidata.launch.watching.processes import processes_of
from mpidata.launch.watching.signals import Signals
from mpidata.launch.watching.supervise import supervise
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan


@pytest.fixture
def job(tmp_path: Path, shim: Path, require: Callable[[str], str]) -> Iterator[Run]:
    require("mpirun")
    run = Run(tmp_path, shim)
    yield run
    run.end()


def test_complete_run_prints_its_figures_and_leaves_its_files(job: Run) -> None:
    job.start(
        write_job(job.folder, trainer='echo "epoch 1 of $RANK"', solver="echo $MPIDATA_RUN"), MPIDATA_REPORT="true"
    )
    status, stdout, stderr = job.finish()
    assert (status, stderr) == (0, "")
    assert "epoch 1 of 0\n" in stdout and "of 1" not in stdout
    assert "\njob: complete\n" in stdout and "3 of 3 complete" in stdout and "1 -> 0.25" in stdout
    assert f"  {job.run}\n" in stdout and "2.0 MB in 1.5 s" in stdout and "7 + 7" in stdout
    assert sorted(os.listdir(job.run)) == [
        *("events.jsonl", "exits", "job.yaml", "logs", "parameters.csv", "private", "progress.json", "report.html"),
        "summary.json",
    ]
    assert (job.run / "logs" / "rank-0006-solver-1-1.log").read_text() == f"{job.run}\n"
    assert job.nothing_left()


@pytest.mark.parametrize(
    ("solver", "said"),
    [
        ("echo oh no; exit 3", "(rank {rank}, number {of_group} of the group) ended with exit status 3. "),
        ("echo oh no; kill -SEGV $$", "(rank {rank}, number {of_group} of the group) was killed by SIGSEGV. "),
    ],
)
def test_failing_solver_fails_the_job_without_fault_tolerance(job: Run, solver: str, said: str) -> None:
    path = write_job(job.folder, trainer="sleep 60", solver=f"{JOINED} {solver}")
    job.start(path, "--set", "launch.fault_tolerance=false", TEST_UNTIL="/never")
    status, stdout, stderr = job.finish()
    summary = job.summary()
    assert status == 1 and summary["status"] == "failed" and "job: failed" in stdout
    said = [said.format(rank=rank, of_group=(rank - 3) % 2) for rank in (3, 4, 5, 6)]
    assert any(one in summary["error"] for one in said)
    assert summary["error"] in stderr and "\n  oh no\n" in stderr
    assert "launch.fault_tolerance is false: if any rank dies, this run ends there. With --restarts 3, for" in stdout
    assert summary["simulations"] == {"requested": 3, "complete": 2, "failed": 0}
    assert job.nothing_left()


def test_program_that_cannot_start_fails_the_job(job: Run) -> None:
    path = write_job(job.folder, trainer="sleep 60")
    program = job.folder / "solver"
    program.write_text("#!/no/such/shell\n")
    program.chmod(0o755)
    job.start(path, "--set", "solvers.program=[./solver]", TEST_JOIN="/never")
    status, _, stderr = job.finish()
    assert status == 1 and f"Cannot start '{program}': the file exists, but not the interpreter" in stderr
    assert job.nothing_left()


def test_removed_run_folder_fails_the_job(job: Run) -> None:
    path = write_job(job.folder, trainer="sleep 60", solver=f"{JOINED} rm -rf $MPIDATA_RUN; sleep 60")
    job.start(path, "--set", "launch.fault_tolerance=false", TEST_UNTIL="/never")
    status, stdout, stderr = job.finish()
    assert status == 1 and not job.run.exists() and "tarting again" not in stdout + stderr
    (said,) = stderr.split("\n", 2)[1:2]
    assert stderr == f"\n{said}\n" and said.startswith(f"The run folder {job.run} was removed while the job ran")
    assert job.nothing_left()


def test_launcher_output_is_shown_if_mpirun_fails_before_any_rank_starts(job: Run) -> None:
    # If mpirun fails before any rank has started, its output is shown.
    job.start(write_job(job.folder), PRTE_MCA_prte_tmpdir_base="/proc/none")
    status, _, stderr = job.finish()
    assert status == 1 and "before any rank had started" in stderr and "launcher.log:\n" in stderr
    assert job.summary()["status"] == "failed" and job.nothing_left()


def test_failed_run_that_does_not_end_after_its_summary_is_ended(job: Run) -> None:
    started = time.monotonic()
    script = write_job(job.folder, solver="trap '' TERM; sleep 60 & sleep 60")
    job.start(script, TEST_GRACE_S="1", TEST_STATUS="failed")
    assert job.finish()[0] == 1
    assert 1 < time.monotonic() - started < 20
    assert job.summary()["status"] == "failed" and job.nothing_left()


def test_programs_may_continue_after_the_stream_ends(job: Run) -> None:
    job.start(write_job(job.folder, trainer="sleep 3; echo saved"), TEST_GRACE_S="1")
    assert job.finish()[0] == 0
    assert "saved" in (job.run / "logs" / "rank-0001-trainer-0.log").read_text()


def test_nonzero_exit_after_the_stream_fails_the_job(job: Run) -> None:
    job.start(write_job(job.folder, trainer="sleep 2; echo no space for the model; exit 3"))
    status, _, errors = job.finish()
    assert status == 1 and job.summary()["status"] == "failed"
    assert "ended with exit status 3" in job.summary()["error"] and "no space for the model" in errors


def test_ctrl_c_ends_a_job_whose_ranks_ignore_signals(job: Run) -> None:
    stubborn = "trap '' TERM INT HUP; echo started; sleep 60 & sleep 60; sleep 60"
    path = write_job(job.folder, stubborn, stubborn)
    process = job.start(path, "--set", "checkpoint.within_s=1", TEST_UNTIL="/never", TEST_DEAF="1", TEST_LATE_S="0.5")
    job.wait_for_ranks()
    job.wait_for((job.run / "progress.json").exists)
    process.send_signal(signal.SIGINT)
    started = time.monotonic()
    code, stdout, _ = job.finish()
    assert code == 130 and time.monotonic() - started < 9
    assert job.summary()["status"] == "stopped" and job.summary()["reason"] == "Ctrl-C"
    assert job.summary()["training"] == {"loss": {"first": 1.0, "last": 0.5}} and job.summary()["bytes"] == 1500000
    assert "job: stopped (Ctrl-C)" in stdout and "1 -> 0.5" in stdout
    assert job.nothing_left()


def is_pending(pid: int, number: int) -> bool:
    """Return whether a signal is pending for a stopped process."""
    pending = re.search(r"^ShdPnd:\s*(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return pending is not None and bool(int(pending[1], 16) >> (number - 1) & 1)


def test_second_signal_ends_the_job_without_waiting_for_mpirun(job: Run) -> None:
    program = "echo started; sleep 60"
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # with nohup, the process would also ignore it
    process = job.start(write_job(job.folder, program, program), TEST_UNTIL="/never")
    signal.signal(signal.SIGHUP, before)
    job.wait_for_ranks()
    launcher = [pid for pid in processes_of(job.run) if Path(f"/proc/{pid}/comm").read_text() == "prterun\n"]
    assert len(launcher) == 1
    os.kill(launcher[0], signal.SIGSTOP)  # makes mpirun hang
    process.send_signal(signal.SIGHUP)
    wait_until(lambda: is_pending(launcher[0], signal.SIGTERM))
    process.send_signal(signal.SIGINT)
    started = time.monotonic()
    assert job.finish()[0] == 129 and time.monotonic() - started < 8
    assert job.nothing_left()


@pytest.mark.parametrize("victim", ["mpidata", "mpirun"])
def test_no_process_outlives_a_killed_mpidata_or_mpirun(job: Run, victim: str) -> None:
    program = "trap '' TERM; echo started; sleep 60 & sleep 60"
    process = job.start(write_job(job.folder, program, program), TEST_UNTIL="/never")
    job.wait_for_ranks()
    job.wait_for_start()  # before that, the job would be restarted
    launcher = [pid for pid in processes_of(job.run) if Path(f"/proc/{pid}/comm").read_text() == "prterun\n"]
    os.kill(process.pid if victim == "mpidata" else launcher[0], signal.SIGKILL)
    status = job.finish()[0]
    wait_until(lambda: not processes_of(job.run))
    if victim == "mpirun":
        assert status == 1 and "killed by SIGKILL" in job.summary()["error"] and job.nothing_left()


def test_end_of_a_run_keeps_the_temporary_files_of_another(job: Run) -> None:
    path = write_job(job.folder, trainer="echo started; sleep 1", solver="echo started")
    go = job.folder / "go"
    job.start(path, TEST_UNTIL=str(go))
    job.wait_for_ranks()
    mine = set(os.listdir(job.temporary))
    assert len(mine) == 1
    second = Run.__new__(Run)
    second.__dict__ |= job.__dict__
    second.start(path)
    assert second.finish()[0] == 0
    assert set(os.listdir(job.temporary)) == mine and (job.folder / "runs" / "job" / "2").is_dir()
    go.touch()
    assert job.finish()[0] == 0 and job.nothing_left()


def test_bad_job_file_is_refused_without_a_traceback(job: Run) -> None:
    job.start(write_job(job.folder), "--set", "buffer.capcity=1")
    status, stdout, stderr = job.finish()
    assert (status, stdout) == (2, "") and "capcity" in stderr and "Traceback" not in stderr
    assert not (job.folder / "runs").exists()


def test_key_without_effect_is_reported_once(job: Run) -> None:
    job.start(write_job(job.folder), "--set", "parameters.path=x.csv")
    status, stdout, stderr = job.finish()
    assert status == 0 and "no effect" not in stdout
    assert stderr.count("\n") == 1 and "'parameters.path' is 'x.csv': no effect with 'parameters.sampler: " in stderr
    assert "mpidata: " + stderr in (job.run / "logs" / "rank-0000-scheduler.log").read_text()


def test_dry_run_prints_the_command_and_creates_no_run(job: Run) -> None:
    path = write_job(job.folder)
    job.start(path, "--dry-run")
    status, stdout, stderr = job.finish()
    assert (status, stderr) == (0, "")
    assert re.search(r"mpirun\'? -n 7 --map-by :OVERSUBSCRIBE --bind-to none ", stdout)
    assert f"mpidata-rank {job.run}\n" in stdout and "7 ranks: 1 scheduler, 2 trainers" in stdout
    assert "# memory of each trainer: " in stdout
    assert not (job.folder / "runs").exists()


def test_dry_run_of_a_named_run_prints_its_run_folder(job: Run) -> None:
    path = write_job(job.folder)
    for expected in ("# 7 ranks: .*; run folder {run}\n", "# {run}, started as nightly, is complete.\n"):
        job.start(path, "--as", "nightly", "--dry-run")
        status, stdout, stderr = job.finish()
        assert (status, stderr) == (0, "") and re.match(expected.format(run=job.run), stdout)
        assert (job.folder / "runs").exists() == ("complete" in expected)
        job.start(path, "--as", "nightly")
        assert job.finish()[0] == 0
    (job.run / "summary.json").unlink()  # as if the run had been killed
    job.start(path, "--as", "nightly", "--dry-run")
    assert f"; run folder {job.run}\n" in job.finish()[1]


def test_temporary_files_are_in_the_expected_folders(job: Run) -> None:
    # Otherwise `nothing_left` would check the wrong folder.
    go = job.folder / "go"
    names = "PMIX_SERVER_TMPDIR", "OMPI_MCA_btl_sm_backing_directory"
    program = f"echo started; env | grep -E '^({'|'.join(names)})='"
    job.start(write_job(job.folder, program, program), TEST_UNTIL=str(go))
    job.wait_for_ranks()
    assert not job.nothing_left()
    log = job.run / "logs/rank-0001-trainer-0.log"
    job.wait_for(lambda: all(f"{name}=" in log.read_text() for name in names))  # programs are ended soon after the job
    go.touch()
    assert job.finish()[0] == 0
    said = dict(line.split("=") for line in log.read_text().splitlines() if line.startswith(names))
    assert said["PMIX_SERVER_TMPDIR"].startswith(str(job.temporary))
    assert not os.path.exists(said["OMPI_MCA_btl_sm_backing_directory"])
    assert tempfile.gettempdir() != str(job.temporary)


def test_launcher_log_that_cannot_be_opened_raises_an_error(tmp_path: Path) -> None:
    run = make_plan(tmp_path, {}).run
    (run / "logs" / "launcher.log").mkdir()
    attempt = Attempt.of(RunFolder(run), Plan.read(RunFolder(run).plan))
    with pytest.raises(LaunchError, match="Cannot write .*launcher.log: Is a directory. Make room"):
        supervise(attempt, ["true"], {}, Signals(True), lambda: None)
