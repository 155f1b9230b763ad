"""The order of the servers' actions: complete pushes or none, staleness, and which trainers are waited for."""

import pytest

from mpidata.servers.order import Do, Order, ServerAction


def begun(trainers: int = 2, servers: int = 2, staleness: int = 0) -> Order:
    order = Order(trainers, servers)
    order.begin(staleness, 0)
    return order


def push(order: Order, trainer: int, servers: int = 2) -> list[ServerAction]:
    """Give a push to all servers; nothing may happen before the last one has it."""
    for server in range(servers - 1):
        order.had(trainer, server)
        assert list(order.deeds()) == []
    order.had(trainer, servers - 1)
    return list(order.deeds())


def test_a_push_counts_when_all_servers_have_it() -> None:
    order = begun(servers=3, staleness=4)
    assert push(order, 1, 3) == [ServerAction(Do.STEP, (1,))]
    assert order.version == 1


def test_pushes_are_applied_in_the_order_of_their_completion() -> None:
    order = begun(staleness=4)
    order.had(0, 0)
    assert push(order, 1) == [ServerAction(Do.STEP, (1,))]
    order.had(0, 1)
    assert list(order.deeds()) == [ServerAction(Do.STEP, (0,))]


def test_no_action_is_due_before_the_servers_have_their_weights() -> None:
    order = Order(1, 1)
    order.had(0, 0)
    order.pull(0, 1)
    assert list(order.deeds()) == []
    order.begin(0, 7)
    assert list(order.deeds()) == [ServerAction(Do.STEP, (0,)), ServerAction(Do.SEND, (0,))] and order.version == 8


def test_step_without_staleness_needs_a_push_of_each_trainer() -> None:
    order = begun()
    assert push(order, 0) == []
    order.pull(0, 1)
    assert list(order.deeds()) == []
    assert push(order, 1) == [ServerAction(Do.STEP, (0, 1)), ServerAction(Do.SEND, (0,))]
    assert order.version == 1


@pytest.mark.parametrize("first", [0, 1])
def test_trainers_without_staleness_resume_together_after_a_rest_in_any_order(first: int) -> None:
    order = begun()
    order.rest(1, 0)
    assert push(order, 0) == [ServerAction(Do.STEP, (0,))]  # alone
    order.rest(0, 1)
    assert list(order.deeds()) == []
    pushes = [1, 0]
    for trainer in (first, 1 - first):
        order.pull(trainer, pushes[trainer])
        assert list(order.deeds()) == [ServerAction(Do.SEND, (trainer,))]
    assert push(order, first) == [] and push(order, 1 - first) == [ServerAction(Do.STEP, (0, 1))]


def test_trainers_without_staleness_resume_together_after_a_save() -> None:
    order = begun()
    order.rest(0, 0)
    assert push(order, 1) == [ServerAction(Do.STEP, (1,))]
    order.save(0, 0, 1)
    order.save(1, 1, 1)
    assert list(order.deeds()) == [ServerAction(Do.SAVE, (0, 1))]
    order.pull(0, 0)
    order.pull(1, 1)
    assert list(order.deeds()) == [ServerAction(Do.SEND, (0,)), ServerAction(Do.SEND, (1,))]


def test_a_pull_waits_while_the_slowest_is_too_far_behind() -> None:
    order = begun(staleness=2)
    for pushes in range(1, 3):
        push(order, 0)
        order.pull(0, pushes)
        assert list(order.deeds()) == [ServerAction(Do.SEND, (0,))] and order.ahead(0) == pushes
    push(order, 0)
    order.pull(0, 3)
    assert list(order.deeds()) == []
    assert push(order, 1) == [ServerAction(Do.STEP, (1,)), ServerAction(Do.SEND, (0,))]


def test_a_pull_waits_for_own_pushes() -> None:
    order = begun(staleness=2)
    order.pull(1, 1)
    order.had(1, 0)
    assert list(order.deeds()) == []
    order.had(1, 1)
    assert list(order.deeds()) == [ServerAction(Do.STEP, (1,)), ServerAction(Do.SEND, (1,))]


def test_resting_trainer_is_waited_for_only_until_its_last_push() -> None:
    order = begun()
    order.had(1, 0)
    order.rest(1, 1)
    assert push(order, 0) == []  # the other's push is under way
    order.had(1, 1)
    assert list(order.deeds()) == [ServerAction(Do.STEP, (0, 1))]
    assert push(order, 0) == [ServerAction(Do.STEP, (0,))]


def test_returning_trainer_is_level_with_the_slowest() -> None:
    order = begun(staleness=1)
    order.rest(1, 0)
    for pushes in range(1, 6):
        push(order, 0)
        order.pull(0, pushes)
        assert list(order.deeds()) == [ServerAction(Do.SEND, (0,))]
    order.pull(1, 0)
    assert list(order.deeds()) == [ServerAction(Do.SEND, (1,))]
    push(order, 0)
    assert (order.ahead(0), order.ahead(1)) == (1, 0)


def test_save_includes_all_earlier_pushes_and_does_not_block_others() -> None:
    order = begun(staleness=1)
    push(order, 0)
    order.had(0, 0)
    order.save(0, 2, 1)
    order.pull(1, 0)
    assert list(order.deeds()) == [ServerAction(Do.SEND, (1,))]
    order.save(1, 0, 1)
    assert list(order.deeds()) == []
    order.had(0, 1)
    assert list(order.deeds()) == [ServerAction(Do.STEP, (0,)), ServerAction(Do.SAVE, (0, 1))]
    push(order, 1)
    assert order.ahead(1) == 1  # both continue training


def test_servers_end_after_all_trainers_left_and_their_pushes_are_applied() -> None:
    order = begun(staleness=1)
    order.leave(0, 0)
    order.had(1, 0)
    order.leave(1, 1)
    assert list(order.deeds()) == []
    order.had(1, 1)
    assert list(order.deeds()) == [ServerAction(Do.STEP, (1,)), ServerAction(Do.END)]


def test_servers_also_end_if_no_script_created_a_parameter_server() -> None:
    order = Order(1, 2)
    order.leave(0, 0)
    assert list(order.deeds()) == [ServerAction(Do.END)]


def test_dead_trainer_is_not_waited_for_and_its_later_pushes_are_ignored() -> None:
    order = begun(staleness=1)
    push(order, 0)
    push(order, 0)
    order.pull(0, 2)
    order.had(1, 0)
    assert list(order.deeds()) == []
    order.died(1)
    assert list(order.deeds()) == [ServerAction(Do.SEND, (0,))]
    order.had(1, 1)  # a late message
    order.had(1, 0)
    order.pull(1, 0)
    order.save(1, 0, 1)
    assert list(order.deeds()) == [] and order.version == 2
    order.leave(0, 2)
    assert list(order.deeds()) == [ServerAction(Do.END)]


def test_pending_push_is_discarded_when_its_trainer_dies() -> None:
    order = begun()
    assert push(order, 1) == []
    order.died(1)
    assert push(order, 0) == [ServerAction(Do.STEP, (0,))]


def test_save_waits_for_paused_trainers_but_not_for_resting_ones() -> None:
    order = begun(trainers=3)
    order.save(0, 0, 1)
    order.rest(1, 0)
    order.pause(2, 0)
    assert list(order.deeds()) == []
    order.save(2, 0, 1)
    assert list(order.deeds()) == [ServerAction(Do.SAVE, (0, 2))]


def test_trainer_that_withdraws_saves_later_unless_all_have_saved() -> None:
    order = begun()
    order.save(0, 0, 1)
    assert order.withdraw(0, 0)
    order.save(1, 0, 1)
    assert list(order.deeds()) == []
    order.save(0, 0, 1)
    assert list(order.deeds()) == [ServerAction(Do.SAVE, (0, 1))]
    assert not order.withdraw(0, 0)


def test_settling_trainer_is_answered_when_its_pushes_are_applied() -> None:
    order = begun(staleness=2)
    order.had(0, 0)
    order.settle(0, 1)
    assert list(order.deeds()) == []
    order.had(0, 1)
    assert list(order.deeds()) == [ServerAction(Do.STEP, (0,)), ServerAction(Do.TELL, (0,))]


def test_save_does_not_wait_for_a_dead_trainer_that_had_paused() -> None:
    order = begun(trainers=2)
    order.pause(1, 0)
    order.save(0, 0, 1)
    order.died(1)
    order.pause(1, 0)  # a message that was under way
    assert list(order.deeds()) == [ServerAction(Do.SAVE, (0,))]


def test_spares_are_waited_for_once_they_pull() -> None:
    order = Order(3, 1, spares=1)
    order.begin(0, 0)
    order.had(0, 0)
    order.had(1, 0)
    assert list(order.deeds()) == [ServerAction(Do.STEP, (0, 1))]
    order.pull(2, 0)
    assert list(order.deeds()) == [ServerAction(Do.SEND, (2,))]
    order.had(0, 0)
    order.had(1, 0)
    assert list(order.deeds()) == []
    order.had(2, 0)
    assert list(order.deeds()) == [ServerAction(Do.STEP, (0, 1, 2))]


def test_save_does_not_wait_for_a_trainer_that_joined_after_the_checkpoint() -> None:
    order = begun(staleness=2)
    order.absent(1, 4)
    order.save(0, 0, 4)
    assert list(order.deeds()) == [ServerAction(Do.SAVE, (0,))]
    order.save(0, 0, 5)
    assert list(order.deeds()) == []
    order.save(1, 0, 5)
    assert list(order.deeds()) == [ServerAction(Do.SAVE, (0, 1))]


def test_trainer_reported_absent_late_takes_part_in_the_next_checkpoint() -> None:
    order = begun(staleness=2)
    order.rest(1, 0)
    order.save(0, 0, 4)
    assert list(order.deeds()) == [ServerAction(Do.SAVE, (0,))]
    order.absent(1, 4)
    order.pull(1, 0)
    order.save(0, 0, 5)
    assert list(order.deeds()) == [ServerAction(Do.SEND, (1,))]
    order.save(1, 0, 5)
    assert list(order.deeds()) == [ServerAction(Do.SAVE, (0, 1))]


def test_later_checkpoint_waits_for_trainers_at_an_earlier_one() -> None:
    order = begun(staleness=2)
    order.absent(1, 4)
    order.save(1, 0, 5)
    assert list(order.deeds()) == []
    order.save(0, 0, 4)
    assert list(order.deeds()) == [ServerAction(Do.SAVE, (0,))]
    order.save(0, 0, 5)
    assert list(order.deeds()) == [ServerAction(Do.SAVE, (0, 1))]


@pytest.mark.parametrize("staleness", [0, 2])
def test_spare_that_pulls_first_after_a_pause_is_level_with_the_others(staleness: int) -> None:
    order = Order(3, 1, spares=1)
    order.begin(staleness, 0)
    for _ in range(6):
        order.had(0, 0)
        order.had(1, 0)
        assert sum(len(deed.trainers) for deed in order.deeds()) == 2
    for trainer, pushes in enumerate((6, 6, 0)):
        order.pause(trainer, pushes)
    order.died(1)
    assert list(order.deeds()) == []
    for trainer, pushes in ((2, 0), (0, 6)):
        order.pull(trainer, pushes)
        assert list(order.deeds()) == [ServerAction(Do.SEND, (trainer,))]
    assert order.ahead(0) == order.ahead(2) == 0
