"""`mpidata run` with the real mpirun when ranks die, when asked to stop, and when a run is resumed."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from launch_job import JOINED, Run, pulse, write_job
from waiting import wait_until, watched_by

from mpidata.launch.watching.processes import processes_of, ranks_of
from mpidata.run.exits import ANOTHER_START


@pytest.fixture
def job(tmp_path: Path, shim: Path, require: Callable[[str], str]) -> Iterator[Run]:
    require("mpirun")
    run = Run(tmp_path, shim)
    yield run
    run.end()


@pytest.mark.full
def test_job_survives_the_death_of_a_solver(job: Run) -> None:
    solver = f'{JOINED} test "$OMPI_COMM_WORLD_RANK" = 5 && {{ touch $MPIDATA_RUN/dead; kill -SEGV $$; }}; true'
    job.start(write_job(job.folder, trainer=f"{JOINED} sleep 1", solver=solver), TEST_UNTIL="{run}/dead")
    status, stdout, stderr = job.finish()
    assert (status, stderr) == (0, "") and job.summary()["status"] == "complete" and "runs without" not in stdout
    assert json.loads((job.run / "exits" / "rank-0005").read_text())["signal"] == signal.SIGSEGV
    assert job.nothing_left()


@pytest.mark.parametrize("victim", [pytest.param("program", marks=pytest.mark.full), "shim"])
def test_death_of_the_scheduler_fails_the_job(job: Run, victim: str) -> None:
    process = job.start(
        write_job(job.folder, *2 * ("trap '' TERM; echo started; sleep 60",)), TEST_UNTIL="/never", TEST_GRACE_S="1"
    )
    job.wait_for_ranks()
    job.wait_for_start()
    wait_until(lambda: watched_by(process.pid) >= 7)
    scheduler = ranks_of(job.run)[0]
    child = int(Path(f"/proc/{scheduler}/task/{scheduler}/children").read_text())
    os.kill(child if victim == "program" else scheduler, signal.SIGKILL)
    started = time.monotonic()
    assert job.finish()[0] == 1 and time.monotonic() - started < 20
    error = job.summary()["error"]
    how = "was killed by SIGKILL" if victim == "program" else "is gone without an exit note: it was killed together"
    assert error.startswith(f"The scheduler (rank 0) {how}") and f"mpidata run --resume {job.run}`" in error
    assert (job.run / "over").exists() and job.nothing_left()


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGUSR1, marks=pytest.mark.full)])
def test_sigterm_or_sigusr1_stops_the_job(job: Run, number: int) -> None:
    wait = "while ! test -e $MPIDATA_RUN/stop; do sleep 0.1; done"
    process = job.start(write_job(job.folder, *2 * (f"echo started; {wait}",)), TEST_UNTIL="/never")
    job.wait_for_start()
    process.send_signal(number)
    status, stdout, stderr = job.finish()
    name = signal.Signals(number).name
    assert (status, stderr) == (75, "") and (job.run / "stop").read_text() == f"{name}\n"
    assert job.summary()["status"] == "stopped" and job.summary()["reason"] == name
    assert f"job: stopped ({name})" in stdout and f"none; mpidata run --resume {job.run} starts over" in stdout
    assert job.nothing_left()


@pytest.mark.parametrize("again", [False, True])
def test_first_ctrl_c_requests_a_checkpoint_and_a_second_one_ends_the_job(job: Run, again: bool) -> None:
    deaf = {"TEST_DEAF": "1"} if again else {}
    wait = "sleep 60" if again else "while ! test -e $MPIDATA_RUN/stop; do sleep 0.1; done"
    path = write_job(job.folder, *2 * (f"trap '' TERM; echo started; {wait}",))
    process = job.start(path, "--set", "checkpoint.within_s=50", TEST_UNTIL="/never", **deaf)
    job.wait_for_start()
    process.send_signal(signal.SIGINT)
    job.wait_for((job.run / "stop").exists)
    second = time.monotonic()
    if again:
        process.send_signal(signal.SIGINT)
    status, stdout, _ = job.finish()
    assert status == 130 and (job.run / "stop").read_text() == "SIGINT\n"
    assert not again or time.monotonic() - second < 20
    assert job.summary()["status"] == "stopped" and job.summary()["reason"] == ("Ctrl-C" if again else "SIGINT")
    line = "after a checkpoint. The job ends when the scripts end, within 50 s. Press Ctrl-C again to end now."
    assert again or line in stdout
    assert job.nothing_left()


@pytest.mark.full
def test_ranks_that_ignore_a_stop_request_are_ended(job: Run) -> None:
    path = write_job(job.folder, *2 * ("trap '' TERM; echo started; sleep 60",))
    job.start(path, "--set", "checkpoint.within_s=0.5", TEST_UNTIL="/never", TEST_DEAF="1", TEST_LATE_S="0.5")
    job.wait_for_start()
    (job.run / "checkpoints" / "000003").mkdir(parents=True)
    assert job.process is not None
    job.process.send_signal(signal.SIGTERM)
    started = time.monotonic()
    status, stdout, _ = job.finish()
    assert status == 75 and 1 < time.monotonic() - started < 20
    assert job.summary()["status"] == "stopped" and f"3; resume with mpidata run --resume {job.run}" in stdout
    assert job.nothing_left()


@pytest.mark.full
def test_sigterm_before_all_ranks_joined_ends_the_job(job: Run) -> None:
    job.start(write_job(job.folder), "--set", "trainers.program=[sleep, '60']", TEST_JOIN="/never")
    job.wait_for(lambda: (job.run / "progress.json").exists())
    assert job.process is not None
    job.process.send_signal(signal.SIGTERM)
    started = time.monotonic()
    assert job.finish()[0] == 75 and time.monotonic() - started < 20
    assert not (job.run / "stop").exists() and job.nothing_left()


def test_stray_signal_to_a_rank_before_all_joined_restarts_the_job(job: Run) -> None:
    """The job did not ask the rank to end, so its death is handled like any other."""
    stray = f"{pulse(0)}; touch again; kill -TERM $PPID; exec sleep 60"
    trainer = f'if test "$RANK" = 1 && test ! -e again; then {stray}; fi'
    job.start(write_job(job.folder, trainer=trainer), TEST_JOIN="{run}/../../../go")
    job.wait_for(lambda: (job.run / "summary-1.json").exists())
    (job.folder / "go").touch()
    status, _, stderr = job.finish()
    assert status == 0, stderr
    assert "Trainer 1 (rank 2) was killed by SIGTERM" in (job.run / "summary-1.json").read_text()
    assert "before all ranks had joined. Starting again (1 of 3)." in stderr and "(2 of 3)" not in stderr
    assert job.nothing_left()


@pytest.mark.full
def test_death_of_a_rank_before_all_joined_restarts_the_job(job: Run) -> None:
    trainer = (
        'n=$(($(cat n 2>/dev/null || echo 0) + 1)); test "$RANK" = 1 && echo $n >n && test $n -lt 3 && kill -9 $$; true'
    )
    job.start(write_job(job.folder, trainer=trainer), TEST_JOIN="{run}/../../../go")
    job.wait_for(lambda: (job.folder / "n").exists() and (job.folder / "n").read_text() == "3\n")
    (job.folder / "go").touch()
    status, stdout, stderr = job.finish()
    assert status == 0, stderr
    assert "before all ranks had joined. Starting again (2 of 3)." in stderr and "(3 of 3)" not in stderr
    assert "starts over" in stdout and job.summary()["status"] == "complete"
    assert {"exits-1", "exits-2", "summary-1.json", "summary-2.json"} <= set(os.listdir(job.run))
    assert "\nattempt 3\n" in (job.run / "private" / "plan").read_text() and job.nothing_left()


def test_vanished_rank_before_all_joined_restarts_the_job(job: Run) -> None:
    go = job.folder / "go"
    process = job.start(
        write_job(job.folder, *2 * ("echo started; while ! test -e go; do sleep 0.1; done",)), TEST_JOIN=str(go)
    )
    job.wait_for_ranks()
    wait_until(lambda: watched_by(process.pid) >= 7)
    os.kill(ranks_of(job.run)[4], signal.SIGKILL)
    job.wait_for((job.run / "exits-1").exists)
    go.touch()
    status, _, stderr = job.finish()
    assert status == 0 and "Starting again (1 of 3)." in stderr
    gone = "A solver of group 0 (rank 4, number 1 of the group) is gone without an exit note: "
    assert stderr.startswith(gone) and job.nothing_left()


@pytest.mark.full
def test_failing_job_is_restarted_at_most_as_often_as_requested(job: Run) -> None:
    # The scheduler is killed each time.
    trainer = f'{JOINED} echo "line of attempt $(ls -d $MPIDATA_RUN/exits* | wc -l)"'
    path = write_job(job.folder, trainer=trainer)
    job.start(path, "--restarts", "2", TEST_UNTIL="/never", TEST_KILL="1", TEST_GRACE_S="0.5")
    status, stdout, stderr = job.finish()
    assert status == 1 and job.summary()["error"].startswith("The scheduler (rank 0) was killed by SIGKILL")
    assert stderr.count("Starting again") == 2 and "(restart 2 of 2)" in stderr
    assert [stdout.count(f"line of attempt {n}\n") for n in (1, 2, 3)] == [1, 1, 1]
    assert stdout.count("job: failed") == 1 and job.nothing_left()


@pytest.mark.full
def test_failing_program_does_not_restart_the_job(job: Run) -> None:
    path = write_job(job.folder, trainer=f"{JOINED} exit 3")
    job.start(path, "--restarts", "2", TEST_UNTIL="/never", TEST_GRACE_S="0.5")
    status, _, stderr = job.finish()
    assert status == 1 and "ended with exit status 3" in stderr and "Starting again" not in stderr


def test_concurrent_starts_under_one_name_create_one_run(job: Run) -> None:
    path, go = write_job(job.folder), job.folder / "go"
    both = [job.start(path, "--as", "night", TEST_UNTIL=str(go)) for _ in range(2)]
    wait_until(lambda: any(process.poll() is not None for process in both), 100)
    go.touch()
    ended = {process.wait(40): process.communicate() for process in both}
    assert ended.keys() == {0, 2}, ended
    assert "is just starting" in ended[2][1] or f"{job.run} is still running" in ended[2][1]
    assert sorted(os.listdir(job.run.parent)) == [".begun-night", "1"] and job.nothing_left()


def test_stopped_run_is_resumed_and_a_running_or_complete_run_is_refused(job: Run) -> None:
    path = write_job(job.folder, *2 * ("echo started; sleep 60",))
    job.start(path, TEST_UNTIL="/never")
    job.wait_for_ranks()
    job.wait_for_start()
    assert job.process is not None
    second = job.again("--resume", str(job.run))
    assert second.returncode == 2 and f"{job.run} is still running. Wait for its end" in second.stderr
    for _ in range(2):
        job.process.send_signal(signal.SIGINT)
        job.wait_for((job.run / "stop").exists)
    assert job.finish()[0] == 130
    refused = job.again("--resume", str(job.run), "--set", "seed=3", "--set", "parameters.count=4")
    assert refused.returncode == 2 and refused.stderr.count("cannot be changed when a run is resumed") == 2
    parameters = (job.run / "parameters.csv").read_bytes()
    (job.folder / "trainer.sh").write_text((job.folder / "trainer.sh").read_text().replace("sleep 60", "true"))
    (job.folder / "solver.sh").write_text((job.folder / "solver.sh").read_text().replace("sleep 60", "true"))
    resumed = job.again("--resume", str(job.run), "--set", "solvers.groups=1")
    assert resumed.returncode == 0, resumed.stderr
    assert f"Resuming {job.run}: it has no usable checkpoint, so it starts over." in resumed.stdout
    plan = (job.run / "private" / "plan").read_text()
    assert "\ngroups 1\n" in plan and "\nattempt 2\n" in plan and "\nworld 5\n" in plan
    assert (job.run / "parameters.csv").read_bytes() == parameters and "groups: 1" in (job.run / "job.yaml").read_text()
    assert json.loads((job.run / "summary-1.json").read_text())["status"] == "stopped"
    assert (job.run / "logs" / "rank-0001-trainer-0.log").read_text() == f"started\n{ANOTHER_START}\nstarted\n"
    assert (job.run / "events.jsonl").read_text().count("start") == 2
    complete = job.again("--resume", str(job.run))
    assert complete.returncode == 2 and "is complete, so there is nothing to resume" in complete.stderr
    none = job.again("--resume", str(job.folder))
    assert none.returncode == 2 and "is not a run folder" in none.stderr
    assert not processes_of(job.run)
