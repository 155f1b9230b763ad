import pytest

from mpidata.errors import MpidataError
from mpidata.scheduler.restore import unfinished_tries
from mpidata.scheduler.simulations import COMPLETE, COUNTED, FAILED, NONE, PENDING, RUNNING, Simulations


def test_simulations_of_first_are_taken_before_the_others() -> None:
    simulations = Simulations(6, trainers=1, first=range(4, 6))
    order = []
    while (simulation := simulations.take(0)) != NONE:
        order.append(simulation)
        simulations.close(0, simulation, steps=1, failed=False)
    assert order == [4, 5, 0, 1, 2, 3]
    assert [simulations.is_first(i) for i in range(6)] == [False] * 4 + [True] * 2
    assert simulations.pending == 0


def test_simulations_of_first_in_the_middle_are_taken_only_once() -> None:
    simulations = Simulations(6, trainers=1, first=range(2, 4))
    assert [simulations.take(group) for group in range(6)] == [2, 3, 0, 1, 4, 5]


def test_states_from_pending_to_complete() -> None:
    simulations = Simulations(2, trainers=3)
    assert simulations.state(0) == PENDING
    assert simulations.take(0) == 0
    assert simulations.state(0) == RUNNING and simulations.running == {0: 0}
    simulations.close(0, 0, steps=7, failed=False)
    assert simulations.state(0) == COUNTED and simulations.steps(0) == 7 and simulations.running == {}
    assert [simulations.hold(trainer, 0, 1) for trainer in range(3)] == [False, False, True]
    assert simulations.state(0) == COMPLETE
    assert simulations.totals == [1, 0, 0, 1, 0, 0]
    assert simulations.settled == 1 and not simulations.all_settled


def test_a_failed_simulation_settles_but_is_not_complete() -> None:
    simulations = Simulations(1, trainers=2)
    simulations.take(0)
    simulations.close(0, 0, steps=3, failed=True)
    assert not simulations.hold(0, 0, 1)
    assert simulations.hold(1, 0, 1)
    assert simulations.state(0) == FAILED and simulations.has_failed(0) and simulations.all_settled
    assert simulations.totals == [0, 0, 0, 0, 1, 0]


def test_closing_a_simulation_that_the_group_does_not_run_is_refused() -> None:
    simulations = Simulations(3, trainers=1)
    simulations.take(0)
    simulations.take(1)
    with pytest.raises(MpidataError, match="Group 0 closed simulation 1, but the scheduler gave it simulation 0"):
        simulations.close(0, 1, steps=1, failed=False)
    with pytest.raises(MpidataError, match="Group 0 closed no simulation, but the scheduler gave it simulation 0"):
        simulations.check_runs(0, NONE)
    with pytest.raises(MpidataError, match="-1 steps"):
        simulations.close(0, 0, steps=-1, failed=False)
    simulations.close(0, 0, steps=1, failed=False)
    simulations.check_runs(0, NONE)
    with pytest.raises(MpidataError, match="gave it no simulation"):
        simulations.close(0, 0, steps=1, failed=False)


@pytest.mark.parametrize("simulation", [-1, 2, 1 << 40])
def test_holding_an_unknown_simulation_is_refused(simulation: int) -> None:
    with pytest.raises(MpidataError, match=f"Trainer 0 holds simulation {simulation} of 2"):
        Simulations(2, trainers=1).hold(0, simulation, 1)


def test_holding_a_simulation_too_early_or_twice_is_refused() -> None:
    simulations = Simulations(1, trainers=1)
    simulations.take(0)
    for by_try in (0, 1, 2):
        with pytest.raises(MpidataError, match=f"holds all of try {by_try} of simulation 0, which has not ended"):
            simulations.hold(0, 0, by_try)
    simulations.close(0, 0, steps=0, failed=False)
    assert simulations.hold(0, 0, 1)
    with pytest.raises(MpidataError, match="holds simulation 0 a second time"):
        simulations.hold(0, 0, 1)
    assert simulations.settled == 1


def test_zero_simulations_are_all_settled() -> None:
    simulations = Simulations(0, trainers=1)
    assert simulations.all_settled
    assert simulations.take(0) == NONE


def run(
    simulations: Simulations, group: int, simulation: int, by_try: int = 1, failed: bool = False, again: bool = True
) -> bool:
    """Take the next simulation, which must be this one; close it; the only trainer holds it if it is expected to."""
    assert simulations.take(group) == simulation and simulations.tries(simulation) == by_try
    return simulations.close(group, simulation, 1, failed, again) and simulations.hold(0, simulation, by_try)


def test_abandoned_simulation_is_not_retried() -> None:
    simulations = Simulations(2, trainers=1, retries=2)
    assert run(simulations, 0, 0, failed=True, again=False)
    assert simulations.has_failed(0) and simulations.settled == 1
    assert run(simulations, 0, 1)


def test_failed_simulation_is_retried_before_new_ones() -> None:
    simulations = Simulations(4, trainers=1, retries=2)
    assert not run(simulations, 0, 0, failed=True)
    assert simulations.state(0) == PENDING and simulations.settled == 0
    assert not run(simulations, 1, 0, by_try=2, failed=True)
    assert run(simulations, 2, 0, by_try=3, failed=True)
    assert simulations.has_failed(0) and simulations.settled == 1
    assert run(simulations, 0, 1)
    assert simulations.totals == [2, 0, 0, 1, 1, 0]


def test_simulations_of_first_are_retried_before_the_others() -> None:
    simulations = Simulations(4, trainers=1, first=range(2, 4), retries=1)
    assert [simulations.take(group) for group in range(3)] == [2, 3, 0]
    for group in (2, 1, 0):
        simulations.lose(group)
    assert [simulations.take(group) for group in range(4)] == [2, 3, 0, 1]


def test_number_of_tries_may_exceed_one_byte() -> None:
    simulations = Simulations(1, trainers=1, retries=300)
    for by_try in range(1, 301):
        assert not run(simulations, 0, 0, by_try=by_try, failed=True)
    assert run(simulations, 0, 0, by_try=301, failed=True)
    assert simulations.all_settled


def test_running_simulation_of_a_lost_group_is_retried_until_no_tries_are_left() -> None:
    simulations = Simulations(2, trainers=2, retries=1)
    simulations.take(5)
    assert simulations.lose(5) == (0, []) and simulations.running == {}
    assert simulations.state(0) == PENDING and not simulations.has_failed(0)
    assert simulations.lose(5) == (NONE, []) and simulations.lose(7) == (NONE, [])
    simulations.take(6)
    assert simulations.lose(6) == (0, [])
    assert simulations.has_failed(0) and simulations.settled == 1 and simulations.totals == [1, 0, 0, 0, 1, 0]


def test_closed_simulations_of_a_lost_group_run_again_unless_complete() -> None:
    simulations = Simulations(4, trainers=2, retries=1)
    for simulation in range(3):
        assert simulations.take(0) == simulation
        simulations.close(0, simulation, 4, failed=False)
    for trainer in range(2):
        simulations.hold(trainer, 1, 1)
    simulations.hold(0, 0, 1)
    assert simulations.take(0) == 3
    assert simulations.lose(0) == (3, [0, 2])
    assert [simulations.state(i) for i in range(4)] == [PENDING, COMPLETE, PENDING, PENDING]
    assert simulations.totals == [3, 0, 0, 1, 0, 0] and simulations.settled == 1


def test_only_the_running_or_last_simulation_of_a_lost_group_fails() -> None:
    simulations = Simulations(3, trainers=1, retries=0)
    for simulation in range(2):
        simulations.take(0)
        simulations.close(0, simulation, 4, failed=False)
    assert simulations.take(0) == 2
    assert simulations.lose(0) == (2, [0, 1]) and simulations.has_failed(2) and unfinished_tries(simulations) == {}
    assert [simulations.take(1), simulations.take(1)] == [0, 1]
    assert simulations.tries(0) == 2 and simulations.counted_tries(0) == 1
    # If none was running, the last one was the cause: a program that dies after each simulation must not run forever.
    simulations = Simulations(2, trainers=1, retries=0)
    for simulation in range(2):
        simulations.take(0)
        simulations.close(0, simulation, 4, failed=False)
    assert simulations.lose(0) == (1, [0]) and simulations.has_failed(1) and not simulations.has_failed(0)


def test_samples_held_of_a_lost_try_do_not_count_for_the_next_try() -> None:
    simulations = Simulations(1, trainers=2, retries=1)
    simulations.take(0)
    simulations.close(0, 0, 4, failed=False)
    assert not simulations.hold(0, 0, 1)
    simulations.lose(0)
    assert not simulations.hold(1, 0, 1)  # late, while it is pending
    simulations.take(1)
    assert not simulations.hold(1, 0, 1)  # while it runs again
    simulations.close(1, 0, 4, failed=False)
    assert not simulations.hold(1, 0, 1)  # while it is counted
    assert not simulations.hold(0, 0, 2)
    assert simulations.state(0) == COUNTED
    assert simulations.hold(1, 0, 2)
    assert simulations.state(0) == COMPLETE


def test_simulation_that_failed_with_its_group_settles_once() -> None:
    simulations = Simulations(1, trainers=2)
    simulations.take(0)
    simulations.close(0, 0, 4, failed=False)
    simulations.hold(0, 0, 1)
    assert simulations.lose(0) == (0, []) and simulations.settled == 1
    assert not simulations.hold(1, 0, 1)
    assert simulations.settled == 1 and simulations.has_failed(0)


def test_abandoned_simulation_settles_when_its_group_is_lost() -> None:
    simulations = Simulations(2, trainers=2)
    simulations.take(0)
    assert simulations.close(0, 0, 4, failed=True)
    assert not simulations.hold(0, 0, 1) and simulations.settled == 0
    assert simulations.lose(0) == (NONE, []) and simulations.settled == 1
    assert not simulations.hold(1, 0, 1) and simulations.settled == 1


def test_give_back_does_not_count_as_a_try() -> None:
    simulations = Simulations(2, trainers=1, retries=0)
    assert simulations.take(0) == 0
    assert simulations.give_back(0) == 0 and simulations.give_back(0) == NONE
    assert simulations.tries(0) == 0 and simulations.pending == 2
    simulations.check_runs(0, NONE)
    assert run(simulations, 1, 0)


def test_restore_resumes_the_states_and_tries_of_an_earlier_run() -> None:
    simulations = Simulations(6, trainers=2, first=range(4, 6), retries=2)
    simulations.restore({0: 10, 4: 3}, {1: 2, 5: 1}, [2])
    assert simulations.totals == [3, 0, 0, 2, 1, 0]
    assert simulations.settled == 3 and simulations.first_settled == 1
    assert simulations.steps(0) == 10 and simulations.totals[COMPLETE] == 2
    assert [simulations.take(group) for group in range(4)] == [5, 1, 3, NONE]
    assert [simulations.tries(i) for i in (5, 1, 3)] == [2, 3, 1]
    assert simulations.lose(1) == (1, []) and simulations.has_failed(1)
    assert simulations.lose(0) == (5, []) and simulations.take(0) == 5
    with pytest.raises(MpidataError, match="holds all of try 1 of simulation 0"):
        simulations.hold(0, 0, 1)


def test_restore_does_not_count_failed_simulations_as_complete() -> None:
    simulations = Simulations(2, trainers=1)
    simulations.restore({0: 10}, {}, [0])  # set aside, yet complete according to the trainers
    assert simulations.totals == [1, 0, 0, 1, 0, 0] and simulations.settled == 1


def run_all(simulations: Simulations, group: int = 0) -> None:
    while (simulation := simulations.take(group)) != NONE:
        simulations.close(group, simulation, steps=4, failed=False)


def test_simulation_lacking_steps_of_a_dead_trainer_reruns_without_using_a_try() -> None:
    simulations = Simulations(3, trainers=3, retries=0)
    run_all(simulations)
    for simulation in (0, 1):
        assert [simulations.hold(trainer, simulation, 1) for trainer in range(3)] == [False, False, True]
    simulations.lose_trainer(1)
    simulations.interrupt()
    assert simulations.interrupted and simulations.take(0) == NONE
    assert not simulations.hold(0, 2, 1) and not simulations.hold(2, 2, 1) and simulations.state(2) == COUNTED
    assert simulations.go_on([0]) == [0]
    assert [simulations.state(i) for i in range(3)] == [PENDING, COMPLETE, COMPLETE] and simulations.settled == 2
    assert simulations.take(0) == 0 and simulations.tries(0) == 2 and simulations.counted_tries(0) == 1
    assert simulations.close(0, 0, steps=4, failed=False)
    assert not simulations.hold(0, 0, 1)  # from the first try
    assert [simulations.hold(trainer, 0, 2) for trainer in (0, 1, 2)] == [False, False, True]
    assert simulations.all_settled and simulations.totals == [0, 0, 0, 3, 0, 0]


def test_try_started_before_a_trainer_death_is_repeated() -> None:
    simulations = Simulations(2, trainers=2, retries=0)
    assert simulations.take(0) == 0
    simulations.lose_trainer(0)
    simulations.interrupt()
    assert simulations.go_on([]) == []
    assert simulations.take(1) == 1 and simulations.close(1, 1, steps=4, failed=False)
    assert not simulations.close(0, 0, steps=4, failed=False) and simulations.state(0) == PENDING
    assert simulations.take(0) == 0 and simulations.close(0, 0, steps=4, failed=False)
    assert simulations.hold(1, 0, 2) and simulations.hold(1, 1, 1) and simulations.all_settled


def test_restored_simulation_may_be_held_before_its_new_try_ends() -> None:
    simulations = Simulations(1, trainers=2)
    simulations.restore({0: 4}, {}, [])
    simulations.lose_trainer(1)
    assert simulations.go_on([0]) == [0] and simulations.take(0) == 0
    assert not simulations.hold(0, 0, 0)  # all of its steps came, but the group has not reported their number
    assert simulations.close(0, 0, steps=4, failed=False) and simulations.hold(0, 0, 1)
    assert simulations.state(0) == COMPLETE and simulations.settled == 1


def test_abandoned_simulation_does_not_run_again_after_a_trainer_death() -> None:
    simulations = Simulations(1, trainers=2)
    simulations.take(0)
    simulations.close(0, 0, steps=3, failed=True)
    simulations.lose_trainer(0)
    simulations.interrupt()
    assert simulations.go_on([0]) == [] and simulations.state(0) == FAILED and simulations.all_settled


def test_simulation_complete_in_a_checkpoint_also_runs_again_after_a_trainer_death() -> None:
    simulations = Simulations(1, trainers=2, retries=0)
    simulations.restore({0: 4}, {}, [])
    simulations.lose_trainer(0)
    simulations.interrupt()
    assert simulations.go_on([0]) == [0]
    assert simulations.take(0) == 0 and simulations.close(0, 0, steps=4, failed=False)
    assert simulations.hold(1, 0, 1) and simulations.all_settled


def test_trainer_may_hold_a_simulation_that_it_lacked_after_an_earlier_change() -> None:
    simulations = Simulations(1, trainers=2, retries=0)
    run_all(simulations)
    assert not simulations.hold(0, 0, 1) and simulations.hold(1, 0, 1)
    simulations.interrupt()
    simulations.interrupt()
    assert not simulations.hold(1, 0, 1)
    assert simulations.go_on([0]) == [0] and simulations.take(0) == 0
