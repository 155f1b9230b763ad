from collections.abc import Callable
from typing import Any

from mpidata.native.event import Died, Error, Event, Finalized, Held, Next, Stop
from mpidata.run import deadlines

MakeJob = Callable[..., Any]


def die_at(job: Any, *times: tuple[int, int], **record: Any) -> None:
    """Let a group die when it gets a simulation, once for each pair of both."""
    left = list(times)

    def dispatch(group: int, simulation: int) -> bool | None:
        if (group, simulation) not in left:
            return None
        left.remove((group, simulation))
        return bool(job.die(group, **record))

    job.before["dispatch"] = dispatch


def test_simulation_of_a_dead_group_runs_in_another_group(make_job: MakeJob) -> None:
    job = make_job(trainers=2, groups=2, simulations=5, retries=1)
    die_at(job, (0, 0), signal=11)
    assert job.run() == 0
    assert [group for group, simulation in job.called("dispatch") if simulation == 0] == [0, 1]
    assert [group for group, _ in job.called("dispatch")].count(0) == 1
    assert job.called("lose") == [(0,)] and job.tries == {0: 2, 1: 1, 2: 1, 3: 1, 4: 1}
    assert job.summary["status"] == "complete" and job.summary["simulations"]["complete"] == 5
    assert job.summary["lost_groups"] == 1 and job.summary["set_aside"] == []
    (retry,) = job.summary["retries"]
    assert retry == {
        "simulation": 0,
        "try": 1,
        "group": 0,
        "cause": "signal",
        "how": "was killed by SIGSEGV",
        "signal": 11,
        "exit": None,
    }
    (lost,) = job.events("group_lost")
    assert lost["rank_in_group"] == 0 and lost["how"] == retry["how"]


def test_retries_run_before_new_simulations(make_job: MakeJob) -> None:
    job = make_job(groups=2, simulations=20, retries=1)
    die_at(job, (0, 0), exit=3)
    assert job.run() == 0
    order = [simulation for _, simulation in job.called("dispatch")]
    assert order.count(0) == 2 and order.index(0, 1) < 4


def test_group_death_without_an_exit_note_has_an_unknown_cause_after_a_timeout(make_job: MakeJob) -> None:
    job = make_job(groups=2, retries=1)
    job.steps = lambda simulation: 4
    (job.plan.run / "exits").mkdir()
    die_at(job, (0, 0))
    assert job.run() == 0
    assert deadlines.WHY_LOST_S <= job.now - 1000 < deadlines.WHY_LOST_S + 1
    assert job.summary["retries"][0]["cause"] == "unknown"
    assert "vanished without an exit note" in job.summary["retries"][0]["how"]
    assert (job.plan.run / "exits" / "vanished-group-0").exists()  # MPI_Finalize of others may hang


def test_late_exit_note_gives_the_cause_of_a_group_death(make_job: MakeJob) -> None:
    job = make_job(groups=2, retries=1, ranks_per_group=2)
    # MPI reported rank 1 first, whose death only followed that of rank 0.
    job.before["dispatch"] = lambda group, simulation: None if group or job.die(0, rank_in_group=1) else False
    poll = job.poll

    def write_then_poll(timeout_s: float) -> Event | None:
        if job.now >= 1000.4:
            job.write_record(0, 0, exit=3)
            job.write_record(0, 1, exit=1, told=True)
        return poll(timeout_s)  # type: ignore[no-any-return]

    job.poll = write_then_poll
    assert job.run() == 0
    assert job.summary["lost_groups"] == 1 and job.events("group_lost")[0]["rank_in_group"] == 0
    assert [entry["how"] for entry in job.summary["retries"]] == ["ended with exit status 3"]


def test_closed_simulation_runs_again_if_its_group_dies_before_trainers_hold_it(make_job: MakeJob) -> None:
    job = make_job(trainers=2, groups=2, simulations=3, retries=1)

    def expect(simulation: int, steps: int) -> bool | None:
        if simulation != 0 or job.tries[0] == 2:
            return None
        job.event(Held, 0, simulation=0, by_try=1)
        job.die(job.called("dispatch").index((0, 0)), exit=3)
        job.event(Held, 1, after=0.5, simulation=0, by_try=1)  # too late: from the lost try
        return False

    job.before["expect"] = expect
    assert job.run() == 0
    assert [simulation for _, simulation in job.called("dispatch")].count(0) == 2
    assert sorted(event["simulation"] for event in job.events("simulation_complete")) == [0, 1, 2]
    again = [event["simulation"] for event in job.events("run_again")]
    assert job.tries[0] == 2 and 0 in again + [entry["simulation"] for entry in job.summary["retries"]]


def test_group_death_not_reported_by_mpi_is_found_by_its_exit_note(make_job: MakeJob) -> None:
    job = make_job(groups=2, simulations=6, retries=1, fault_tolerance="ulfm")

    def vanish(group: int, simulation: int) -> bool | None:
        if (group, simulation) != (0, 0) or job.called("lose"):
            return None
        job.running[group] = -1
        job.write_record(group, 0, signal=9)
        return False

    job.before["dispatch"] = vanish
    assert job.run() == 0
    assert job.called("lose") == [(0,)] and job.summary["retries"][0]["cause"] == "signal"
    assert 1003 <= job.now < 1006


def test_simulations_held_by_the_trainers_do_not_run_again(make_job: MakeJob) -> None:
    job = make_job(groups=2, simulations=6, retries=2)
    # The group has completed 0 and 2 when it dies in the middle of 4.
    die_at(job, (0, 4), signal=9)
    assert job.run() == 0
    assert sorted(simulation for _, simulation in job.called("dispatch")) == [0, 1, 2, 3, 4, 4, 5]


def test_late_messages_of_a_lost_group_are_ignored(make_job: MakeJob) -> None:
    job = make_job(groups=2, simulations=4, retries=1)
    die_at(job, (0, 0), signal=9)

    def lose(group: int) -> None:
        job.event(Next, 0, simulation=0, steps=10)
        job.event(Error, 0, text="MPI_ERR_PROC_FAILED")
        job.event(Died, 0, rank_in_group=0)
        job.event(Finalized, 0)

    job.before["lose"] = lose
    assert job.run() == 0
    assert job.summary["status"] == "complete" and job.summary["lost_groups"] == 1
    assert job.called("lose") == [(0,)] and job.called("gone") == [(1,)]
    assert job.tries == {0: 2, 1: 1, 2: 1, 3: 1}


def test_spare_group_replaces_a_lost_one(make_job: MakeJob) -> None:
    job = make_job(groups=1, spares=2, simulations=4, retries=1)
    die_at(job, (0, 2), signal=9)
    assert job.run() == 0
    assert job.called("dispatch") == [(0, 0), (0, 1), (0, 2), (1, 2), (1, 3)]
    assert [event["group"] for event in job.events("spare_takes_over")] == [1]
    assert sorted(job.called("no_more")) == [(1,), (2,)]
    assert job.summary["simulations"]["complete"] == 4


def test_death_of_a_spare_group_causes_no_retry_or_spawn(make_job: MakeJob) -> None:
    job = make_job(groups=1, spares=1, can_spawn=True, simulations=4)
    job.before["dispatch"] = lambda group, simulation: None if simulation or job.die(1, signal=9) else None
    assert job.run() == 0
    assert job.called("spawn") == [] and job.summary["lost_groups"] == 1 and job.summary["retries"] == []


def test_job_fails_if_the_last_group_dies(make_job: MakeJob) -> None:
    job = make_job(groups=1, simulations=4, retries=3)
    job.print(0, "reading the mesh\nno memory\n")
    die_at(job, (0, 1), signal=9)
    assert job.run() == 1
    assert job.summary["status"] == "failed" and job.called("stop") == [()]
    assert "No group is left: the last one, group 0, was killed by SIGKILL" in job.summary["error"]
    assert f"mpidata run --resume {job.plan.run}" in job.summary["error"]
    assert job.summary["simulations"] == {"requested": 4, "complete": 1, "failed": 0}


def test_job_completes_if_the_last_group_dies_while_idle(make_job: MakeJob) -> None:
    job = make_job(trainers=1, groups=2, simulations=2)
    # Both have closed their simulations; group 0 leaves, group 1 dies while it waits; then the trainer holds 0.
    job.before["dispatch"] = lambda group, simulation: job.finalize(0) if group == 0 else None

    def expect(simulation: int, steps: int) -> bool | None:
        if simulation == 1:
            return None
        job.event(Held, 0, after=4.0, simulation=0, by_try=1)
        job.event(Died, 1, after=1.0)
        return False

    job.before["expect"] = expect
    assert job.run() == 0
    assert job.summary["status"] == "complete" and job.summary["lost_groups"] == 1


def test_validation_set_is_announced_despite_a_failed_simulation(make_job: MakeJob) -> None:
    job = make_job(groups=3, simulations=4, validation=2)
    die_at(job, (0, 4), signal=9)
    assert job.run() == 0
    assert job.called("validation") == [()] and job.summary["set_aside"][0]["simulation"] == 4


def test_trainer_death_ends_the_job_with_an_error_naming_the_trainer(make_job: MakeJob) -> None:
    job = make_job(trainers=2, groups=1, simulations=100)
    (job.plan.run / "exits").mkdir()
    (job.plan.run / "exits" / "rank-0002").write_text('{"signal": 9, "exit": null}')
    job.before["dispatch"] = lambda group, simulation: False
    job.event(Died, 1, after=1.0, of_solver=False, rank=2)
    assert job.run() == 1
    assert job.now < 1001.5 and (job.plan.run / "over").exists()
    assert job.summary["status"] == "failed"
    assert "Trainer 1 (rank 2) was killed by SIGKILL" in job.summary["error"]
    assert f"mpidata run --resume {job.plan.run}" in job.summary["error"]


def test_dead_trainer_is_named_even_if_its_exit_note_follows_other_errors(make_job: MakeJob) -> None:
    job = make_job(trainers=2, groups=1, simulations=100)
    job.before["dispatch"] = lambda group, simulation: False
    job.event(Died, 1, after=1.0, of_solver=False, rank=2)
    job.event(Stop, 0, after=1.1, of_solver=False, rank=1, failed=True, text="RuntimeError: connection closed by peer")
    job.event(Error, 0, after=1.2, of_solver=False, rank=1, text="MPI_ERR_PROC_FAILED")
    poll = job.poll

    def poll_and_note(timeout_s: float) -> list[Event]:
        if job.now >= 1001.5:
            (job.plan.run / "exits" / "rank-0002").write_text('{"signal": 9, "exit": null}')
        return poll(timeout_s)

    job.poll = poll_and_note  # type: ignore[method-assign]
    (job.plan.run / "exits").mkdir()
    assert job.run() == 1
    assert "Trainer 1 (rank 2) was killed by SIGKILL" in job.summary["error"] and job.now < 1002


def test_error_reported_together_with_a_death_is_not_the_cause(make_job: MakeJob) -> None:
    job = make_job(trainers=2, groups=1, simulations=100)
    job.before["dispatch"] = lambda group, simulation: False
    job.event(Died, 1, after=1.0, of_solver=False, rank=2)
    job.event(Error, 0, after=1.0, of_solver=False, rank=1, text="MPI_ERR_PROC_FAILED")
    poll = job.poll
    job.poll = lambda timeout_s: [*poll(timeout_s), *poll(0.0)]  # type: ignore[method-assign]
    assert job.run() == 1
    assert "Trainer 1 (rank 2) vanished" in job.summary["error"]
    assert not [event for event in job.events("error") if event["error"] == "MPI_ERR_PROC_FAILED"]


def test_trainer_death_without_an_exit_note_ends_the_job_after_a_timeout(make_job: MakeJob) -> None:
    job = make_job(trainers=2, groups=1, simulations=100)
    job.before["dispatch"] = lambda group, simulation: False
    job.event(Died, 1, after=1.0, of_solver=False, rank=2)
    assert job.run() == 1
    assert "Trainer 1 (rank 2) vanished without an exit note" in job.summary["error"]
    assert deadlines.WHY_TRAINER_DIED_S <= job.now - 1001 < deadlines.WHY_TRAINER_DIED_S + 1


def test_trainer_death_after_its_goodbye_does_not_fail_the_job(make_job: MakeJob) -> None:
    job = make_job(trainers=2)

    def end_of_stream() -> bool:
        job.goodbye(0)
        job.event(Died, 0, after=1.0, of_solver=False, rank=1)
        job.goodbye(1, after=2.0)
        return False

    job.before["end_of_stream"] = end_of_stream
    assert job.run() == 0
    assert job.summary["status"] == "complete"


def test_group_deaths_during_a_stop_cause_no_retries(make_job: MakeJob) -> None:
    job = make_job(groups=2, simulations=100, retries=3)
    job.before["dispatch"] = lambda group, simulation: False

    def stop() -> bool:
        job.die(0, signal=9)
        job.die(1, signal=9)
        job.goodbye(0)
        return False

    job.before["stop"] = stop
    job.event(Stop, 0, after=1.0, text="left")
    assert job.run() == 0
    assert job.summary["status"] == "stopped" and job.summary["error"] is None
    assert job.summary["retries"] == [] and job.summary["lost_groups"] == 2
    assert len(job.called("dispatch")) == 2
