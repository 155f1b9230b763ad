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


def test_pushes_are_in_the_order_in_which_they_became_whole() -> None:
    order = begun(staleness=4)
    order.had(0, 0)
    assert push(order, 1) == [ServerAction(Do.STEP, (1,))]
    order.had(0, 1)
    assert list(order.deeds()) == [ServerAction(Do.STEP, (0,))]


def test_nothing_is_done_before_the_servers_have_their_parts() -> None:
    order = Order(1, 1)
    order.had(0, 0)
    order.pull(0, 1)
    assert list(order.deeds()) == []
    order.begin(0, 7)
    assert list(order.deeds()) == [ServerAction(Do.STEP, (0,)), ServerAction(Do.SEND, (0,))] and order.version == 8


def test_without_staleness_a_step_takes_a_push_of_each() -> None:
    order = begun()
    assert push(order, 0) == []
    order.pull(0, 1)
    assert list(order.deeds()) == []
    assert push(order, 1) == [ServerAction(Do.STEP, (0, 1)), ServerAction(Do.SEND, (0,))]
    assert order.version == 1


@pytest.mark.parametrize("first", [0, 1])
def test_without_staleness_all_go_on_together_after_a_rest_whoever_comes_first(first: int) -> None:
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


def test_without_staleness_all_go_on_together_after_they_have_saved() -> None:
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


def test_nobody_waits_for_one_that_rests_but_for_its_last_push() -> None:
    order = begun()
    order.had(1, 0)
    order.rest(1, 1)
    assert push(order, 0) == []  # the other's push is under way
    order.had(1, 1)
    assert list(order.deeds()) == [ServerAction(Do.STEP, (0, 1))]
    assert push(order, 0) == [ServerAction(Do.STEP, (0,))]


def test_one_that_comes_back_is_as_far_as_the_slowest() -> None:
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


def test_a_state_is_of_all_pushes_before_it_and_holds_nobody_up() -> None:
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


def test_the_end_is_when_all_have_left_and_their_pushes_are_in() -> None:
    order = begun(staleness=1)
    order.leave(0, 0)
    order.had(1, 0)
    order.leave(1, 1)
    assert list(order.deeds()) == []
    order.had(1, 1)
    assert list(order.deeds()) == [ServerAction(Do.STEP, (1,)), ServerAction(Do.END)]


def test_a_script_without_a_server_ends_the_servers_too() -> None:
    order = Order(1, 2)
    order.leave(0, 0)
    assert list(order.deeds()) == [ServerAction(Do.END)]


def test_of_one_that_died_no_further_push_counts_and_nobody_waits_for_it() -> None:
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


def test_a_push_that_waited_for_others_counts_no_more_when_its_trainer_has_died() -> None:
    order = begun()
    assert push(order, 1) == []
    order.died(1)
    assert push(order, 0) == [ServerAction(Do.STEP, (0,))]


def test_who_saves_waits_for_one_that_pauses_but_not_for_one_that_rests() -> None:
    order = begun(trainers=3)
    order.save(0, 0, 1)
    order.rest(1, 0)
    order.pause(2, 0)
    assert list(order.deeds()) == []
    order.save(2, 0, 1)
    assert list(order.deeds()) == [ServerAction(Do.SAVE, (0, 2))]


def test_one_that_withdraws_saves_later_unless_all_have_saved() -> None:
    order = begun()
    order.save(0, 0, 1)
    assert order.withdraw(0, 0)
    order.save(1, 0, 1)
    assert list(order.deeds()) == []
    order.save(0, 0, 1)
    assert list(order.deeds()) == [ServerAction(Do.SAVE, (0, 1))]
    assert not order.withdraw(0, 0)


def test_one_that_settles_is_answered_when_its_pushes_count() -> None:
    order = begun(staleness=2)
    order.had(0, 0)
    order.settle(0, 1)
    assert list(order.deeds()) == []
    order.had(0, 1)
    assert list(order.deeds()) == [ServerAction(Do.STEP, (0,)), ServerAction(Do.TELL, (0,))]


def test_nobody_waits_for_a_dead_one_that_had_paused() -> None:
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


def test_the_others_take_a_checkpoint_without_one_that_has_joined_since() -> None:
    order = begun(staleness=2)
    order.absent(1, 4)
    order.save(0, 0, 4)
    assert list(order.deeds()) == [ServerAction(Do.SAVE, (0,))]
    order.save(0, 0, 5)
    assert list(order.deeds()) == []
    order.save(1, 0, 5)
    assert list(order.deeds()) == [ServerAction(Do.SAVE, (0, 1))]


def test_one_that_says_late_that_it_is_absent_takes_part_in_the_next_checkpoint() -> None:
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


def test_who_waits_for_a_later_checkpoint_waits_for_those_at_an_earlier_one() -> None:
    order = begun(staleness=2)
    order.absent(1, 4)
    order.save(1, 0, 5)
    assert list(order.deeds()) == []
    order.save(0, 0, 4)
    assert list(order.deeds()) == [ServerAction(Do.SAVE, (0,))]
    order.save(0, 0, 5)
    assert list(order.deeds()) == [ServerAction(Do.SAVE, (0, 1))]


@pytest.mark.parametrize("staleness", [0, 2])
def test_a_spare_that_comes_first_after_a_meeting_is_as_far_as_the_others(staleness: int) -> None:
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
