import hashlib
import signal
from collections.abc import Callable
from typing import Any

import pytest

from mpidata.native.event import CheckpointWritten, Died, Error, Goodbye, Next, RecordStopped, Status, Stop

MakeJob = Callable[..., Any]


def test_job_stops_if_all_trainers_leave_their_loops(make_job: MakeJob) -> None:
    job = make_job(trainers=2, groups=2, simulations=100)
    for trainer in range(2):
        job.event(Stop, trainer, text="the script left its loop early, after batch 3")
    assert job.run() == 0
    assert job.called("stop") == [()] and job.called("all_gone") == [()]
    assert job.summary["status"] == "stopped" and job.summary["error"] is None
    assert job.summary["reason"] == "trainer 0: the script left its loop early, after batch 3"
    assert job.now < 1001


def test_job_stops_if_one_trainer_leaves_its_loop(make_job: MakeJob) -> None:
    job = make_job(trainers=3, groups=2, simulations=100)
    job.event(Stop, 1)
    assert job.run() == 0
    assert job.summary["status"] == "stopped" and "trainer 1" in job.summary["reason"]


def test_no_simulation_is_dispatched_or_counted_after_a_stop(make_job: MakeJob) -> None:
    job = make_job(groups=2, simulations=100)

    def stop() -> bool:
        # One group receives the stop before it closes its simulation, the other one after.
        job.event(Next, 0, **job.close_running(0))
        job.event(Next, 1)
        job.goodbye(0)
        return False

    job.before["dispatch"] = lambda group, simulation: False
    job.before["stop"] = stop
    job.event(Stop, 0, after=1.0)
    assert job.run() == 0
    assert len(job.called("dispatch")) == 2 and job.called("expect") == []
    assert sorted(job.called("no_more")) == [(0,), (1,)]
    assert job.summary["simulations"] == {"requested": 100, "complete": 0, "failed": 0}


def test_trainers_that_do_not_leave_after_a_stop_fail_the_job(make_job: MakeJob) -> None:
    job = make_job(trainers=3, groups=1, simulations=100)

    def stop() -> bool:
        job.goodbye(0)
        job.finalize(0)
        return False

    job.before |= {"stop": stop, "dispatch": lambda group, simulation: False}
    job.event(Stop, 0, after=1.0, text="the script left its loop")
    assert job.run() == 1
    assert job.summary["status"] == "failed"
    assert "trainer 0: the script left its loop" in job.summary["error"]
    assert "trainers 1, 2 did not leave within 7 s" in job.summary["error"]
    assert job.now <= 1000 + 1 + 8


def test_job_waits_for_scripts_that_left_their_loops(make_job: MakeJob) -> None:
    job = make_job(trainers=2, groups=1, simulations=100)

    def stop() -> bool:
        job.goodbye(0, after=60.0)
        job.goodbye(1, after=90.0)
        job.finalize(0)
        return False

    job.before |= {"stop": stop, "dispatch": lambda group, simulation: False}
    for trainer in range(2):
        job.event(Stop, trainer, after=1.0)
    assert job.run() == 0
    assert job.now > 1090 and job.summary["status"] == "stopped"


def given_up(job: Any) -> list[str]:
    return sorted(path.name for path in (job.plan.run / "given-up").glob("*"))


@pytest.mark.parametrize("fault_tolerance, ended", [("ulfm", ["group-1"]), ("none", [])])
def test_late_groups_are_ended_while_scripts_continue_only_with_ulfm(
    make_job: MakeJob, fault_tolerance: str, ended: list[str]
) -> None:
    job = make_job(trainers=2, groups=2, simulations=100, fault_tolerance=fault_tolerance)
    seen: list[tuple[float, list[str]]] = []

    def stop() -> bool:
        job.finalize(0)
        job.event(Stop, 1, after=4.0)
        job.event(Status, 0, after=6.0, ended=True)
        job.event(Goodbye, 0, after=50.0)
        job.event(Goodbye, 1, after=60.0)
        return False

    job.before |= {"stop": stop, "dispatch": lambda group, simulation: False}
    job.event(Stop, 0, after=1.0)
    poll = job.poll

    def look(timeout_s: float) -> Any:
        seen.append((job.now, given_up(job)))
        if ended and job.now > 1020 and 1 in job.scheduler.groups.alive:
            job.event(Died, 1)
        return poll(timeout_s)

    job.poll = look
    status_of_job = job.run()
    assert not any(names for now, names in seen if now < 1007)
    assert given_up(job) == ended and (not ended or min(now for now, names in seen if names) < 1010)
    assert job.now > 1060 and job.summary["status"] == "stopped" and job.events("group_lost") == []
    assert status_of_job == (0 if ended else 1000)  # otherwise the rest ends with the last script


@pytest.mark.parametrize(
    ("trainer", "error"),
    [(0, "RuntimeError: connection to the tracker closed"), (1, "TypeError: save() takes 1 positional argument")],
)
def test_script_failure_after_a_stop_is_reported_as_the_error(make_job: MakeJob, trainer: int, error: str) -> None:
    job = make_job(trainers=trainer + 1, groups=1, simulations=100)
    job.before |= {"stop": lambda: False, "dispatch": lambda group, simulation: False}
    job.event(Stop, 0, text="the script called stream.close()")
    job.event(Stop, trainer, after=2.0, failed=1, text=error)
    assert job.run() == 1
    assert job.summary["error"].startswith(f"{error}. The script of trainer {trainer}")


def test_late_groups_are_ended_after_a_stop(make_job: MakeJob) -> None:
    job = make_job(trainers=2, groups=2, simulations=100)

    def stop() -> bool:
        job.goodbye(0)
        job.goodbye(1)
        job.finalize(0)
        return False

    job.before |= {"stop": stop, "dispatch": lambda group, simulation: False}
    job.event(Stop, 0, after=1.0)
    assert job.run() == 1000
    assert job.called("abort") == [(0,)]
    assert job.summary["status"] == "stopped" and job.now <= 1000 + 1 + 8
    assert job.events("overdue")[0]["groups"] == [1]


def test_a_failed_script_fails_the_job(make_job: MakeJob) -> None:
    job = make_job(trainers=2, groups=2, simulations=100)
    job.before["dispatch"] = lambda group, simulation: False
    job.event(Stop, 1, failed=1, text="ValueError: no such thing (train.py line 7)")
    assert job.run() == 1
    assert job.summary["status"] == "failed"
    assert job.summary["error"].startswith("ValueError: no such thing (train.py line 7). ")
    assert "trainer 1" in job.summary["error"]
    assert job.called("stop") == [()] and job.now < 1002


def test_failed_script_ends_the_job_soon_if_the_others_hang(make_job: MakeJob) -> None:
    job = make_job(trainers=2, groups=2, simulations=100)
    job.before |= {"stop": lambda: False, "dispatch": lambda group, simulation: False}
    job.event(Stop, 1, failed=1, text="ValueError: no such thing")
    assert job.run() == 1
    assert job.now <= 1004


def test_error_that_names_mpidata_is_not_blamed_on_a_lost_peer(make_job: MakeJob) -> None:
    job = make_job(trainers=2, groups=1, simulations=100)
    job.before |= {"stop": lambda: False, "dispatch": lambda group, simulation: False}
    job.event(Stop, 0, text="left")
    job.event(Stop, 1, after=2.0, failed=1, text="mpidata.Normalizer: 'u' has no statistics")
    assert job.run() == 1
    assert job.summary["error"].startswith("mpidata.Normalizer: 'u' has no statistics. ")


def test_connection_error_after_a_stop_names_the_trainer_that_left_first(make_job: MakeJob) -> None:
    job = make_job(trainers=2, groups=1, simulations=100)
    job.before |= {"stop": lambda: False, "dispatch": lambda group, simulation: False}
    job.event(Stop, 0, text="left")
    job.event(Stop, 1, after=2.0, failed=1, text="RuntimeError: connection closed by peer")
    assert job.run() == 1
    first = "Trainer 0 (rank 1) left before the others (left). Trainer 1 then failed: RuntimeError: connection closed"
    assert job.summary["error"].startswith(first)
    assert job.summary["reason"] == "trainer 0: left"
    assert job.called("stop") == [()] and job.now <= 1006


def test_stop_while_the_trainers_drain_does_not_fail_the_job(make_job: MakeJob) -> None:
    job = make_job(trainers=2)

    def end_of_stream() -> bool:
        for trainer in range(2):
            job.event(Stop, trainer, after=1.0, text="left")
        return False

    job.before["end_of_stream"] = end_of_stream
    assert job.run() == 0
    assert job.summary["error"] is None
    assert job.summary["simulations"]["complete"] == 3


def test_goodbye_before_the_end_stops_the_job(make_job: MakeJob) -> None:
    job = make_job(trainers=2, groups=1, simulations=100)
    job.event(Goodbye, 1)
    assert job.run() == 0
    assert job.called("stop") == [()]
    assert job.summary["status"] == "stopped" and "trainer 1" in job.summary["reason"]


def test_signal_stops_the_job_immediately(make_job: MakeJob) -> None:
    job = make_job(trainers=2, simulations=100)

    def dispatch(group: int, simulation: int) -> bool:
        job.scheduler.interrupt(2)
        return False

    job.before["dispatch"] = dispatch
    assert job.run() == 128 + 2
    assert job.now < 1000.2
    assert job.summary["status"] == "stopped" and job.summary["reason"] == "SIGINT"


@pytest.mark.parametrize("how", ["signal", "file"])
def test_a_stop_from_outside_waits_for_a_checkpoint(make_job: MakeJob, how: str) -> None:
    job = make_job(trainers=1, simulations=100, checkpoint_within_s=20.0)
    job.before["dispatch"] = lambda group, simulation: False
    if how == "signal":
        job.scheduler.interrupt(10)
    else:
        (job.plan.run / "stop").write_text("SIGUSR1")
    told = []

    def checkpoint(number: int) -> None:
        told.append(job.now)
        (job.plan.run / "checkpoints" / f"{number:06d}.new" / "trainer-0000.h5").write_bytes(b"state")
        digest = hashlib.sha256(b"state").hexdigest()
        job.event(CheckpointWritten, 0, after=3.0, number=number, batch=7, bytes=5, text=digest)

    job.before["checkpoint"] = checkpoint
    assert job.run() == 0
    assert job.summary["status"] == "stopped"
    assert job.summary["reason"] == "SIGUSR1: checkpoint 1 of batch 7 was written"
    (written,) = job.events("checkpoint")
    assert written["number"] == 1 and job.now >= told[0] + 3.0


def test_stop_from_outside_ends_the_job_at_its_deadline(make_job: MakeJob) -> None:
    job = make_job(trainers=1, simulations=100, checkpoint_within_s=20.0)
    job.before["dispatch"] = lambda group, simulation: False
    job.before["stop"] = lambda: False  # nobody leaves
    job.scheduler.interrupt(15)
    began = job.now
    assert job.run() == 1000
    assert began + 19 < job.now < began + 22
    assert job.summary["status"] == "stopped"
    late = "trainer 0 had not ended in time, and was ended"
    assert job.summary["reason"] == f"SIGTERM: no checkpoint could be written in time; {late}"
    assert (job.plan.run / "over").exists()


def test_ctrl_c_writes_no_checkpoint_and_ends_the_job_after_the_scripts(make_job: MakeJob) -> None:
    job = make_job(trainers=1, simulations=100, checkpoint_within_s=50.0)
    job.before["dispatch"] = lambda group, simulation: False
    (job.plan.run / "stop").write_text("SIGINT without-checkpoint\n")

    def stop() -> bool:  # the script saves its model; the group is in a long step
        job.goodbye(0, after=20.0)
        return False

    job.before["stop"] = stop
    assert job.run() == 1000 and job.called("abort") == [(0,)]
    assert 1000 + 20 + 7 <= job.now < 1000 + 20 + 8
    assert job.called("checkpoint") == [] and job.summary["reason"] == "Ctrl-C"


def test_scripts_that_have_not_ended_after_ctrl_c_are_named(make_job: MakeJob) -> None:
    job = make_job(trainers=3, simulations=100, checkpoint_within_s=50.0)
    job.before["dispatch"] = lambda group, simulation: False
    (job.plan.run / "stop").write_text("SIGINT without-checkpoint\n")

    def stop() -> bool:
        job.goodbye(1)
        return False

    job.before["stop"] = stop
    assert job.run() == 1000 and 1050 <= job.now < 1052
    assert job.summary["status"] == "stopped"
    assert job.summary["reason"] == "Ctrl-C; trainers 0, 2 had not ended in time, and were ended"


def test_a_full_trainer_is_relieved_when_another_one_starves(make_job: MakeJob) -> None:
    job = make_job(trainers=2, simulations=2, capacity=100)
    job.before["dispatch"] = lambda group, simulation: False
    for tick in range(20):
        job.event(Status, 0, after=0.2 * (tick + 1), starved=1, statistics=[5, 0, 0, 1, 0, 100, 0, 0])
        job.event(Status, 1, after=0.2 * (tick + 1), full=1, statistics=[100, 0, 0, 1, 100, 100, 0, 100])
    job.before["relieve"] = lambda trainer, samples: job.event(Error, text="enough")
    assert job.run() == 1
    assert job.called("relieve")[0] == (1, 25)
    event = job.events("relief")[0]
    assert event["trainer"] == 1 and event["samples"] == 25 and "trainer 0 starves" in event["reason"]


def test_no_relief_while_trainers_drain(make_job: MakeJob) -> None:
    job = make_job(trainers=2)

    def end_of_stream() -> bool:
        for tick in range(50):
            job.event(Status, 0, after=0.2 * (tick + 1), starved=1)
            job.event(Status, 1, after=0.2 * (tick + 1), full=1)
        for trainer in range(2):
            job.goodbye(trainer, after=11.0)
        return False

    job.before["end_of_stream"] = end_of_stream
    assert job.run() == 0
    assert job.called("relieve") == []


def test_second_stop_does_not_extend_the_deadline(make_job: MakeJob) -> None:
    job = make_job(trainers=3, groups=1, simulations=100)
    job.before |= {"stop": lambda: False, "dispatch": lambda group, simulation: False}
    for trainer in range(2):
        job.event(Stop, trainer, after=1.0 + 5.0 * trainer)
    assert job.run() == 1
    assert job.now <= 1000 + 1 + 8


def test_simulation_abandoned_during_a_stop_counts_as_failed_but_is_not_expected(make_job: MakeJob) -> None:
    job = make_job(groups=2, simulations=100)
    job.fails = {0: "it diverged"}

    def stop() -> bool:
        job.event(Next, 0, **job.close_running(0))
        job.goodbye(0)
        job.finalize(1)
        return False

    job.before |= {"stop": stop, "dispatch": lambda group, simulation: False}
    job.before["no_more"] = lambda group: job.finalize(group)
    job.event(Stop, 0, after=1.0)
    assert job.run() == 0
    assert job.called("expect") == [] and job.summary["simulations"]["failed"] == 1


@pytest.mark.parametrize("left_early", [False, True])
def test_stopped_recording_fails_the_run_only_at_its_end(make_job: MakeJob, left_early: bool) -> None:
    """The run fails only at its end: everything is trained on, and the ranks may take their time afterwards."""
    job = make_job(trainers=2)
    job.event(RecordStopped, 1, text="Recording to x has stopped: No space left on device.")
    if left_early:
        job.event(Stop, 0, text="enough")
    assert job.run() == 0
    assert job.summary["status"] == "failed" and job.summary["in_order"] is True
    assert job.summary["error"] == "Recording to x has stopped: No space left on device."
    assert job.summary["simulations"]["complete"] == (0 if left_early else 3)
    assert job.events("record_stopped")[0]["trainer"] == 1


def test_sigterm_after_a_stopped_recording_ends_the_run_as_stopped(make_job: MakeJob) -> None:
    job = make_job(checkpoint_within_s=1.0)
    job.before["dispatch"] = lambda group, simulation: False
    job.event(RecordStopped, 0, text="Recording has stopped.")
    job.scheduler.interrupt(signal.SIGTERM)
    job.run()
    assert job.summary["status"] == "stopped" and job.summary["error"] == "Recording has stopped."


def test_groups_killed_by_the_batch_system_do_not_count_as_lost(make_job: MakeJob) -> None:
    """A batch system sends SIGTERM to all, to some a moment earlier; ranks that die of it have not failed."""
    job = make_job(groups=2, retries=0, simulations=5)

    def dispatch(group: int, simulation: int) -> bool | None:
        if simulation != 1:
            return None
        job.die(group, signal=15, told=True)
        job.scheduler.interrupt(15)
        return False

    job.before["dispatch"] = dispatch
    job.run()
    assert job.called("lose") == [(1,)] and job.events("group_lost") == []
    assert job.summary["status"] == "stopped" and job.summary["lost_groups"] == 0
    assert job.summary["retries"] == job.summary["set_aside"] == [] and job.summary["simulations"]["failed"] == 0


def test_script_error_during_a_stop_from_outside_does_not_fail_the_job(make_job: MakeJob) -> None:
    job = make_job(groups=1, simulations=100)
    job.scheduler.ending.stop_from_outside("SIGTERM", job.now + 60)
    job.event(Stop, 0, after=1.0, failed=1, text="StreamError: The job is being stopped (train.py line 9)")
    job.run()
    assert (job.summary["status"], job.summary["error"], job.summary["reason"]) == ("stopped", None, "SIGTERM")
    assert "train.py line 9" in (job.plan.run / "events.jsonl").read_text()
