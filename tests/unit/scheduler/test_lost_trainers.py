"""Trainers that die while the others continue."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dying_trainers import die, leave_note
from fake_library import make_plan

from mpidata.loading.figures import EXITS, LEFT_EARLY, PREFIX, PUSHES, STEP_WAITS_S, UNTRAINED
from mpidata.native.event import (
    CheckpointWanted,
    CheckpointWritten,
    Died,
    Goodbye,
    Report,
    Status,
    Stop,
)
from mpidata.run import deadlines
from mpidata.run.folder import RunFolder
from mpidata.scheduler.deaths.lost_trainers import LostTrainers
from mpidata.scheduler.ending import Ending
from mpidata.scheduler.groups import Groups
from mpidata.scheduler.trainers import FirstCause, SilenceWatch

MakeJob = Callable[..., Any]
PEER = "RuntimeError: [gloo] Connection closed by peer (train.py line 9)"


class RunOutput:
    """Records the events and the trainers that the figures count as lost."""

    def __init__(self) -> None:
        self.figures = self
        self.lost_trainers: list[int] = []
        self.events: list[dict[str, Any]] = []
        self.batches: dict[int, int] = {}
        self.drawn = [7, 7, 7]

    def per_trainer(self, which: int) -> list[int]:
        return self.drawn

    def had(self, trainer: int, batches: int, of_stream: bool) -> None:
        self.batches[trainer] = batches

    def note(self, event: str, **values: Any) -> None:
        self.events.append({"event": event, **values})


def lost_trainers(run: Path, **keys: Any) -> tuple[LostTrainers, RunOutput]:
    output = RunOutput()
    plan = make_plan(run=run, **{"trainers": 4, "world": 9, "trainers_at_least": 2} | keys)
    return LostTrainers(plan, output, SilenceWatch(plan)), output  # type: ignore[arg-type]


@pytest.mark.parametrize(("at_least", "may"), [(0, 0), (1, 3), (2, 2), (3, 1), (4, 0)])
def test_trainers_may_die_down_to_at_least(tmp_path: Path, at_least: int, may: int) -> None:
    lost, output = lost_trainers(tmp_path, trainers_at_least=at_least)
    for trainer in range(may):
        assert lost.one_may_die(4 - trainer) and lost.few(4 - trainer) == ""
        lost.died(trainer, 3 - trainer, 0.0)
    assert not lost.one_may_die(4 - may) and output.lost_trainers == list(range(may))
    few = {0: "", 1: "no trainer is left, fewer than", 2: "1 trainer is left, fewer than"}
    assert lost.few(4 - may).startswith(few.get(at_least, f"{at_least - 1} trainers are left, fewer than"))
    assert not at_least or lost.few(4 - may).endswith(f"'trainers.elastic.at_least', {at_least}")


def test_trainer_death_is_reported_when_its_exit_note_arrives(tmp_path: Path) -> None:
    lost, output = lost_trainers(tmp_path)
    lost.died(2, 3, 10.0)
    lost.tick(10.5, [])
    assert output.events == []
    leave_note(tmp_path, 2, signal=11)
    lost.tick(10.6, [])
    lost.tick(99.0, [])
    (event,) = output.events
    assert event["event"] == "trainer_lost" and (event["trainer"], event["left"]) == (2, 3)
    assert event["how"] == "was killed by SIGSEGV" and event["signal"] == 11


def test_trainer_death_without_an_exit_note_is_reported_after_a_timeout(tmp_path: Path) -> None:
    lost, output = lost_trainers(tmp_path)
    lost.died(0, 3, 10.0)
    lost.died(3, 2, 11.0)
    lost.tick(10.0 + deadlines.WHY_TRAINER_DIED_S - 0.1, [])
    assert output.events == []
    lost.tick(10.0 + deadlines.WHY_TRAINER_DIED_S, [])
    lost.tick(11.0 + deadlines.WHY_TRAINER_DIED_S, [])
    assert [(event["trainer"], event["cause"]) for event in output.events] == [(0, "unknown"), (3, "unknown")]
    assert all(event["how"].startswith("vanished without an exit note") for event in output.events)


def given_up(run: Path) -> list[int]:
    return [trainer for trainer in range(4) if RunFolder(run).given_up(trainer, "trainer").exists()]


def test_trainer_whose_script_ended_early_is_killed_if_others_wait(tmp_path: Path) -> None:
    lost, output = lost_trainers(tmp_path, groups=0)
    assert not lost.all_exit([])
    assert lost.reported(1, [(EXITS, 0, 7.0)], range(3), range(3), 5.0) == ""
    lost.tick(99.0, range(3), range(3))
    assert not lost.all_exit(range(3)) and lost.all_exit([1]) and given_up(tmp_path) == []
    for trainer in (0, 2):
        assert lost.reported(trainer, [(STEP_WAITS_S, 0, 1.1)], range(3), range(3), 99.0) == ""
    assert given_up(tmp_path) == [1]
    lost.died(1, 2, 100.0)
    lost.tick(100.0 + deadlines.WHY_TRAINER_DIED_S, [0, 2])
    assert [event["event"] for event in output.events] == ["trainer_late", "trainer_lost"]
    how = "has ended, because its script ended in the middle of the training, after 7 batches"
    assert output.events[1]["how"] == how and output.events[1]["exit"] == 0


def test_stream_trainer_whose_script_ended_early_is_killed_if_others_continue(tmp_path: Path) -> None:
    lost, output = lost_trainers(tmp_path)
    lost.reported(1, [(EXITS, 0, 7.0)], range(3), range(3), 5.0)
    lost.tick(6.5, range(3), range(3))
    output.drawn = [8, 7, 8]  # within two seconds: they may also be about to end
    lost.tick(9.0, range(3), range(3))
    lost.tick(50.0, range(3), range(3))
    assert given_up(tmp_path) == []
    output.drawn = [9, 7, 8]
    lost.tick(51.0, range(3), [1])
    assert given_up(tmp_path) == []
    lost.tick(51.0, range(3), [0, 1])
    assert given_up(tmp_path) == [1]


def test_trainer_that_others_wait_for_too_long_is_killed_and_reported(tmp_path: Path) -> None:
    lost, output = lost_trainers(tmp_path, trainers_timeout_s=30.0)
    for seconds in range(2, 32):
        for trainer in (0, 1, 3):
            assert lost.waits(trainer, float(seconds), range(4), [], 0.0) == ""
    assert given_up(tmp_path) == [] and output.events == []
    for seconds in range(32, 40):
        for trainer in (0, 1, 3):
            assert lost.waits(trainer, float(seconds), range(4), [], 0.0) == ""
    assert given_up(tmp_path) == [2]
    assert output.events == [{"event": "trainer_late", "trainer": 2, "seconds": 32.0}]
    lost.died(2, 3, 50.0)
    leave_note(tmp_path, 2, signal=9)
    lost.tick(50.0, [])
    how = "was killed, because the others had waited for it for 30 s (trainers.timeout_s)"
    assert output.events[1]["how"] == how and output.events[1]["cause"] == "silent"


def test_trainer_that_just_started_to_wait_is_not_late(tmp_path: Path) -> None:
    """A trainer reports its wait only after a second, in which several others report: they wait for trainer 3."""
    lost, _ = lost_trainers(tmp_path, trainers_timeout_s=30.0)
    for trainer, seconds in ((0, 30.0), (1, 30.1), (0, 31.0), (1, 31.1), (2, 1.1)):
        assert lost.waits(trainer, seconds, range(4), [], 0.0) == "" and given_up(tmp_path) == []
    for trainer, seconds in ((0, 32.0), (1, 32.1), (2, 2.1)):
        assert lost.waits(trainer, seconds, range(4), [], 0.0) == ""
    assert given_up(tmp_path) == [3]


def test_suspicion_of_a_late_trainer_starts_again_after_it_continues(tmp_path: Path) -> None:
    lost, _ = lost_trainers(tmp_path, trainers=2, trainers_at_least=1, trainers_timeout_s=30.0)
    for seconds in (30.0, 31.0, 0.0, 32.0, 33.0):
        assert lost.waits(0, seconds, range(2), [], 0.0) == ""
    assert given_up(tmp_path) == []


def test_job_ends_if_all_trainers_wait_for_one_another(tmp_path: Path) -> None:
    lost, _ = lost_trainers(tmp_path, trainers_timeout_s=30.0)
    assert [lost.waits(trainer, 31.0, [0, 1, 3], [], 0.0) for trainer in (0, 1)] == ["", ""]
    assert lost.waits(3, 29.0, [0, 1, 3], [], 0.0) == "" and lost.waits(0, 32.0, [0, 1, 3], [], 0.0) == ""
    why = lost.waits(3, 30.0, [0, 1, 3], [], 0.0)
    assert why.startswith("All trainers have waited for one another for 30 s. Each must make the same collective calls")


def test_spare_that_never_starts_is_killed_if_all_others_wait(tmp_path: Path) -> None:
    lost, _ = lost_trainers(tmp_path, trainers_timeout_s=30.0)
    for trainer in (0, 1, 3):
        lost._silence.heard(trainer, 39.9)
    assert [lost.waits(trainer, 31.0, [0, 1], range(4), 40.0) for trainer in (0, 1)] == ["", ""]
    assert given_up(tmp_path) == [2]


def test_wait_timeout_restarts_after_a_trainer_death(tmp_path: Path) -> None:
    lost, _ = lost_trainers(tmp_path, trainers_timeout_s=30.0)
    lost.died(2, 3, 99.0)
    assert [lost.waits(trainer, 59.0, [0, 1], [], 128.0) for trainer in (0, 1)] == ["", ""]
    assert lost.waits(0, 61.0, [0, 1], [], 130.0).startswith("All trainers have waited")


def test_late_trainers_are_not_killed_in_a_job_that_is_not_elastic(tmp_path: Path) -> None:
    lost, _ = lost_trainers(tmp_path, trainers_at_least=0, trainers_timeout_s=30.0)
    assert [lost.waits(0, seconds, range(4), [], 0.0) for seconds in (40.0, 50.0, 60.0)] == [""] * 3 and given_up(
        tmp_path
    ) == []


def test_end_of_the_job_does_not_wait_for_lost_trainers(tmp_path: Path) -> None:
    plan = make_plan(run=tmp_path, trainers=2, world=9, groups=0, loaders=0)
    ending = Ending(2, Groups(plan, False), Groups(plan, False))
    ending.trainer_left(1, 5.0)
    ending.trainer_lost(0)
    assert ending.trainers == [] and not ending.is_over(5.1)  # waits for the last figures of trainer 1
    ending.status_came(1)
    assert ending.is_over(5.1)
    ending = Ending(2, Groups(plan, False), Groups(plan, False))
    ending.trainer_left(0, 5.0)
    ending.trainer_left_loop(1)
    ending.trainer_lost(0)  # its figures no longer come
    ending.trainer_lost(1)
    assert ending.is_over(5.1)


def test_stop_does_not_wait_for_lost_trainers(tmp_path: Path) -> None:
    plan = make_plan(run=tmp_path, trainers=2, world=9, groups=0, loaders=0)
    ending = Ending(2, Groups(plan, False), Groups(plan, False))
    ending.stop(0.0, "enough")
    ending.trainer_left_loop(1)
    ending.trainer_lost(0)
    assert not ending.is_due(60.0) and ending.status == 0


@pytest.mark.parametrize(("text", "named"), [(PEER, "Trainer 1 (rank 2) was killed by SIGSEGV"), ("ValueError: x", "")])
def test_lost_trainer_is_named_as_the_cause_of_connection_errors_only(tmp_path: Path, text: str, named: str) -> None:
    plan = make_plan(run=tmp_path, trainers=3, world=9)
    cause = FirstCause(plan, SilenceWatch(plan))
    leave_note(tmp_path, 1, signal=11)
    cause.lost(1)
    assert not cause.known and cause.verdict(99.0, final=True) is None
    cause.reported(2, text, 100.0)
    verdict = cause.verdict(100.0 + deadlines.WHY_TRAINER_FAILED_S)
    assert verdict is not None and verdict.error.startswith(named or f"{text}. The script of trainer 2 failed")


def elastic(make_job: MakeJob, trainers: int = 3, at_least: int = 1, **plan: Any) -> Any:
    """Return a job of trainers that train on part files."""
    return make_job(
        trainers=trainers,
        trainers_at_least=at_least,
        groups=0,
        simulations=0,
        loaders=1,
        fault_tolerance="ulfm",
        **plan,
    )


def test_elastic_job_survives_the_death_of_a_trainer(make_job: MakeJob) -> None:
    job = elastic(make_job)
    die(job, 1, 2.0, signal=11)
    job.event(Goodbye, 0, after=50.0)
    job.event(Goodbye, 2, after=50.0)
    assert job.run() == 0 and job.summary["status"] == "complete"
    assert job.summary["lost_trainers"] == [1]
    (lost,) = job.events("trainer_lost")
    assert (lost["trainer"], lost["left"], lost["how"]) == (1, 2, "was killed by SIGSEGV")
    assert json.loads((job.plan.run / "progress.json").read_text())["lost_trainers"] == [1]


def test_batches_that_a_dead_trainer_had_not_reported_are_counted(make_job: MakeJob) -> None:
    job = elastic(make_job, trainers=2)
    values = ((f"{PREFIX}epoch", 0, 0.0), (f"{PREFIX}batches", 0, 5.0))
    for trainer in range(2):
        job.event(Report, trainer, after=1.0, values=values)
    die(job, 1, 2.0, signal=11, batches=7)
    job.event(Goodbye, 0, after=9.0)
    assert job.run() == 0 and job.summary["loaded"]["batches"] == [5, 7]


def test_job_fails_with_fewer_trainers_than_at_least(make_job: MakeJob) -> None:
    job = elastic(make_job, at_least=2)
    job.before["stop"] = lambda: False
    die(job, 1, 2.0, signal=11)
    die(job, 2, 10.0, signal=6)
    assert job.run() == 1
    cause = "was killed by SIGABRT, and 1 trainer is left, fewer than 'trainers.elastic.at_least', 2. Its output is in"
    assert job.summary["error"].startswith(f"Trainer 2 (rank 3) {cause}") and job.summary["died"]
    assert job.summary["error"].endswith("There is no checkpoint to resume from: start the job again.")
    assert job.summary["lost_trainers"] == [1]


def test_error_below_at_least_suggests_a_resume_if_a_checkpoint_exists(make_job: MakeJob) -> None:
    job = elastic(make_job, at_least=3)
    job.before["stop"] = lambda: False
    (RunFolder(job.plan.run).checkpoints / "000001").mkdir(parents=True)
    die(job, 1, 2.0, signal=9)
    assert job.run() == 1 and "and 2 trainers are left" in job.summary["error"]
    assert job.summary["error"].endswith(f"Resume the job with `mpidata run --resume {job.plan.run}`.")


def test_death_of_a_server_ends_an_elastic_job(make_job: MakeJob) -> None:
    job = elastic(make_job, servers=1)
    job.before["stop"] = lambda: False
    leave_note(job.plan.run, 4, signal=9, silent_s=3.0, silent_key="trainers.timeout_s")
    job.event(Died, 0, after=2.0, of_solver=False, of_server=True, rank=5, rank_in_group=0)
    assert job.run() == 1 and "lost_trainers" not in job.summary and job.summary["died"]
    said = "Server 0 (rank 5) was silent for 3 s, longer than trainers.timeout_s allows. Its output is in"
    assert job.summary["error"].startswith(said), job.summary["error"]


def test_job_with_servers_continues_if_a_trainer_leaves_in_mid_epoch(make_job: MakeJob) -> None:
    job = make_job(trainers=2, groups=0, simulations=0, loaders=1, servers=1)
    job.event(Report, 1, after=1.0, values=((LEFT_EARLY, 0, 3.0), (UNTRAINED, 0, 34.0), (PUSHES, 0, 3.0)))
    job.event(Goodbye, 1, after=1.0)
    job.event(Report, 0, after=5.0, values=((PUSHES, 0, 20.0), (f"{PREFIX}epoch", 0, 0.0)))
    job.event(Report, 0, after=6.0, values=((PUSHES, 0, 25.0),))
    job.event(Goodbye, 0, after=9.0)
    assert job.run() == 0 and job.summary["status"] == "stopped"
    assert job.summary["reason"] == "trainer 1 left the job in the middle of an epoch, after 3 batches"
    assert job.summary["loaded"]["untrained"] == 34 and job.summary["servers"] == {"ranks": 1, "pushes": 28}


def test_last_trainers_may_die_after_others_have_left(make_job: MakeJob) -> None:
    """MPI may report a death late if it has much to report."""
    job = elastic(make_job)
    job.event(Goodbye, 2, after=1.0)
    die(job, 1, 2.0, signal=9)
    die(job, 0, 3.0, signal=9)
    assert job.run() == 0 and job.summary["lost_trainers"] == [1, 0]


def test_death_of_the_last_trainer_fails_the_job_if_another_left_in_mid_epoch(make_job: MakeJob) -> None:
    job = elastic(make_job, trainers=2)
    job.before["stop"] = lambda: False
    job.event(Report, 1, after=1.0, values=((LEFT_EARLY, 0, 3.0),))
    job.event(Goodbye, 1, after=1.0)
    die(job, 0, 2.0, signal=9)
    assert job.run() == 1 and "lost_trainers" not in job.summary


def test_death_after_goodbye_does_not_count_as_a_lost_trainer(make_job: MakeJob) -> None:
    job = elastic(make_job, trainers=2, at_least=1)
    job.event(Goodbye, 1, after=1.0)
    die(job, 1, 2.0)
    job.event(Goodbye, 0, after=9.0)
    assert job.run() == 0 and "lost_trainers" not in job.summary


def test_lost_trainer_is_not_reported_as_silent(make_job: MakeJob) -> None:
    job = elastic(make_job, trainers=2)
    job.before["stop"] = lambda: False
    job.event(Status, 1, after=1.0)
    die(job, 1, 2.0)
    for second in range(100):
        job.event(Status, 0, after=float(second))
    job.event(Stop, 0, after=99.0, failed=1, text=PEER)
    assert job.run() == 1 and job.events("trainer_silent") == [] and job.summary["error"].startswith(PEER)


def test_elastic_job_does_not_survive_a_death_after_a_failed_script(make_job: MakeJob) -> None:
    job = elastic(make_job)
    job.before["stop"] = lambda: False
    job.event(Stop, 0, after=1.0, failed=1, text=PEER)
    die(job, 1, 1.5)
    assert job.run() == 1
    assert job.summary["error"].startswith("Trainer 1 (rank 2) vanished without an exit note")


def test_trainers_that_wait_for_one_another_end_the_job(make_job: MakeJob) -> None:
    job = elastic(make_job, trainers=2, trainers_timeout_s=30.0)
    for second in range(1, 40):
        for trainer in range(2):
            job.event(Report, trainer, after=float(second), values=((STEP_WAITS_S, 0, float(second)),))
    job.before["stop"] = lambda: False
    assert job.run() == 1 and job.summary["error"].startswith("All trainers have waited for one another for 30 s.")


def test_checkpoint_restarts_if_it_waits_for_a_lost_trainer(make_job: MakeJob) -> None:
    job = elastic(make_job)

    def write(number: int) -> None:
        for trainer in (0, 1):
            (RunFolder(job.plan.run).checkpoints / f"{number:06}.new" / f"trainer-{trainer:04}.h5").touch()
            job.event(CheckpointWritten, trainer, number=number, batch=5, bytes=0, text="0" * 64)

    job.before["checkpoint"] = write
    job.event(CheckpointWanted, 0, after=1.0, batch=5)
    die(job, 2, 5.0, signal=9)
    for trainer in range(2):
        job.event(Goodbye, trainer, after=20.0)
    assert job.run() == 0 and job.called("checkpoint") == [(1,), (2,)]
    (again,) = job.events("checkpoint_again")
    assert again["number"] == 1 and again["reason"] == "trainer 2 has died meanwhile"
    assert job.events("checkpoint_failed") == []
    assert [event["number"] for event in job.events("checkpoint")] == [2]


def test_hanging_spare_is_killed_and_the_others_continue(make_job: MakeJob) -> None:
    """The others wait for the spare in their meeting, because it may take a place there."""
    job = elastic(make_job, trainer_spares=1, trainers_timeout_s=30.0)
    job.event(Status, 2, after=1.0)
    for second in range(1, 40):
        for trainer in range(2):
            job.event(Status, trainer, after=float(second))
            waits = float(second) if second < 34 else 0.0
            job.event(Report, trainer, after=float(second), values=((STEP_WAITS_S, 0, waits),))
    die(job, 2, 33.5, signal=9)
    for trainer in range(2):
        job.event(Goodbye, trainer, after=40.0)
    assert job.run() == 0 and job.summary["lost_trainers"] == [2]
    (late,) = job.events("trainer_late")
    assert late["trainer"] == 2 and RunFolder(job.plan.run).given_up(2, "trainer").exists()
