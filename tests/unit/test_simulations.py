import pytest

from mpidata.errors import MpidataError
from mpidata.simulations import COMPLETE, COUNTED, FAILED, NONE, PENDING, RUNNING, Simulations


def test_order_is_first_then_the_others() -> None:
    simulations = Simulations(6, trainers=1, first=range(4, 6))
    order = []
    while (simulation := simulations.take(0)) != NONE:
        order.append(simulation)
        simulations.close(0, simulation, steps=1, failed=False)
    assert order == [4, 5, 0, 1, 2, 3]
    assert [simulations.is_first(i) for i in range(6)] == [False] * 4 + [True] * 2
    assert simulations.pending == 0


def test_first_in_the_middle_is_taken_once() -> None:
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
    assert simulations.totals == [1, 0, 0, 1, 0]
    assert simulations.settled == 1 and not simulations.all_settled


def test_a_failed_simulation_settles_but_is_not_complete() -> None:
    simulations = Simulations(1, trainers=2)
    simulations.take(0)
    simulations.close(0, 0, steps=3, failed=True)
    assert not simulations.hold(0, 0, 1)
    assert simulations.hold(1, 0, 1)
    assert simulations.state(0) == FAILED and simulations.has_failed(0) and simulations.all_settled
    assert simulations.totals == [0, 0, 0, 0, 1]


def test_closing_what_the_group_does_not_run() -> None:
    simulations = Simulations(3, trainers=1)
    simulations.take(0)
    simulations.take(1)
    with pytest.raises(MpidataError, match="Group 0 closed simulation 1, but the scheduler gave it simulation 0"):
        simulations.close(0, 1, steps=1, failed=False)
    with pytest.raises(MpidataError, match="Group 0 closed no simulation, but the scheduler gave it simulation 0"):
        simulations.check_idle(0)
    with pytest.raises(MpidataError, match="-1 steps"):
        simulations.close(0, 0, steps=-1, failed=False)
    simulations.close(0, 0, steps=1, failed=False)
    simulations.check_idle(0)
    with pytest.raises(MpidataError, match="gave it no simulation"):
        simulations.close(0, 0, steps=1, failed=False)


@pytest.mark.parametrize("simulation", [-1, 2, 1 << 40])
def test_holding_what_does_not_exist(simulation: int) -> None:
    with pytest.raises(MpidataError, match=f"Trainer 0 holds simulation {simulation} of 2"):
        Simulations(2, trainers=1).hold(0, simulation, 1)


def test_holding_what_is_not_counted_or_held_by_all() -> None:
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


def test_none_at_all() -> None:
    simulations = Simulations(0, trainers=1)
    assert simulations.all_settled
    assert simulations.take(0) == NONE
