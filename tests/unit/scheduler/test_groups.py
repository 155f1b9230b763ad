from typing import Any

from fake_library import make_plan

from mpidata.scheduler.groups import Groups


def some_groups(can_spawn: bool = True, **plan: Any) -> Groups:
    return Groups(make_plan(**plan), can_spawn)


def ask(groups: Groups, *asking: int) -> None:
    for group in asking:
        groups.works(group)
        groups.ask(group)


def test_groups_are_served_in_the_order_of_their_requests() -> None:
    groups = some_groups(groups=3)
    ask(groups, 2, 0, 1)
    assert list(groups.ready()) == [2, 0, 1]
    assert list(groups.ready()) == []


def test_spares_wait_until_a_place_is_free() -> None:
    groups = some_groups(groups=2, spares=2)
    assert groups.alive == [0, 1, 2, 3] and groups.promote() == []
    ask(groups, 3, 0, 1)
    assert list(groups.ready()) == [0, 1]
    groups.lose(0)
    assert groups.promote() == [3]  # 3 already waits, 2 does not
    assert list(groups.ready()) == [3]
    groups.leave(1)
    assert groups.promote() == [2]
    ask(groups, 2)
    assert list(groups.ready()) == [2]
    assert groups.alive == [2, 3] and groups.lost == {0}


def test_release_returns_all_waiting_groups_including_spares() -> None:
    groups = some_groups(groups=1, spares=2)
    ask(groups, 1, 0, 2)
    assert groups.release() == [1, 0, 2] and groups.release() == []


def test_lost_group_is_neither_ready_nor_released() -> None:
    groups = some_groups(groups=2)
    ask(groups, 0, 1)
    groups.lose(0)
    assert list(groups.ready()) == [1] and groups.release() == []


def test_spawned_groups_get_new_numbers_that_are_never_reused() -> None:
    groups = some_groups(groups=2, spares=1)
    assert groups.to_spawn(10, 0.0) == []
    groups.lose(0)
    assert groups.promote() == [2] and groups.to_spawn(10, 0.0) == []
    groups.lose(2)
    assert groups.to_spawn(10, 0.0) == [3] and groups.starting == {3}
    assert groups.to_spawn(10, 0.0) == []
    groups.spawned(3)
    ask(groups, 3)
    groups.lose(3)
    assert groups.to_spawn(10, 0.0) == [4]
    assert groups.alive == [1] and groups.lost == {0, 2, 3}


def test_a_spare_fills_a_place_before_a_spawn_does() -> None:
    groups = some_groups(groups=1, spares=1)
    groups.lose(0)
    assert groups.promote() == [1] and groups.to_spawn(10, 0.0) == []


def test_place_of_a_starting_group_is_not_free() -> None:
    groups = some_groups(groups=1, spares=0)
    groups.lose(0)
    assert groups.to_spawn(5, 0.0) == [1] and groups.promote() == []


def test_lost_group_is_not_replaced_without_spawning() -> None:
    groups = some_groups(can_spawn=False, groups=2)
    groups.lose(0)
    assert groups.to_spawn(10, 0.0) == [] and groups.any_left
    groups.leave(1)
    assert not groups.any_left


def test_spawn_start_spawns_groups_as_needed_and_replaces_those_that_leave() -> None:
    groups = some_groups(start="spawn", groups=4)
    assert groups.alive == [] and groups.any_left
    assert groups.to_spawn(0, 0.0) == [] and groups.to_spawn(3, 0.0) == [0, 1, 2]
    assert groups.to_spawn(3, 0.0) == []
    for group in range(3):
        groups.spawned(group)
    assert groups.to_spawn(3, 0.0) == []  # they have not asked yet, but will
    ask(groups, 0, 1, 2)
    assert groups.to_spawn(3, 0.0) == [3]
    groups.leave(1)
    assert groups.to_spawn(9, 0.0) == [4]  # a group that leaves is also replaced


def test_split_start_spawns_no_group_in_place_of_one_that_left() -> None:
    groups = some_groups(groups=1)
    groups.leave(0)
    assert groups.to_spawn(10, 0.0) == [] and not groups.any_left


def test_groups_of_one_simulation_each_are_replaced_without_limit() -> None:
    groups = some_groups(start="spawn", lifetime="simulation", groups=2)
    assert groups.to_spawn(9, 0.0) == [0, 1]
    groups.spawned(0)
    assert groups.to_spawn(7, 0.0) == []
    groups.leave(0)
    assert groups.to_spawn(7, 0.0) == [2]
    groups.spawned(1)
    for group in range(3, 40):  # a death before the first request counts for the simulation, which has its own limit
        groups.lose(group - 2)
        assert groups.to_spawn(7, 0.0) == [group]
        groups.spawned(group - 1)
    assert groups.given_up == 0


def test_failed_spawns_are_repeated_one_at_a_time_after_growing_pauses() -> None:
    groups = some_groups(start="spawn", groups=3, retries=3)
    assert groups.to_spawn(9, 10.0) == [0, 1, 2]
    groups.spawned(0)
    ask(groups, 0)
    assert groups.spawn_failed(1, 11.0)
    assert groups.to_spawn(9, 11.4) == [] and groups.to_spawn(9, 11.6) == []  # group 2 is still starting
    groups.spawned(2)
    assert groups.to_spawn(9, 11.6) == [3]
    assert groups.spawn_failed(3, 12.0)
    assert groups.to_spawn(9, 12.9) == [] and groups.to_spawn(9, 13.1) == [4]
    assert groups.spawn_failed(4, 13.1)
    assert groups.to_spawn(9, 15.0) == [] and groups.to_spawn(9, 15.2) == [5]
    assert not groups.spawn_failed(5, 16.0)
    assert groups.given_up == 1 and groups.to_spawn(9, 100.0) == [] and groups.any_left


def test_spawning_stops_after_repeated_failures_without_a_join() -> None:
    groups = some_groups(start="spawn", groups=6, retries=1)
    assert not groups.any_joined
    assert groups.to_spawn(9, 0.0) == [0, 1, 2, 3, 4, 5]
    groups.spawned(0)
    groups.spawned(1)
    ask(groups, 0, 1)
    assert groups.spawn_failed(2, 120.0)
    groups.spawned(3)
    ask(groups, 3)
    assert groups.spawn_failed(4, 240.0)  # a group has joined since the previous failure
    assert not groups.spawn_failed(5, 240.0) and not groups.hopeless
    assert groups.to_spawn(9, 300.0) == [6, 7]
    assert groups.spawn_failed(6, 420.0) and not groups.spawn_failed(7, 420.0)
    assert groups.hopeless and groups.any_joined and groups.to_spawn(9, 1000.0) == [] and groups.any_left
    for group in groups.alive:
        groups.leave(group)
    assert groups.to_spawn(9, 2000.0) == [] and not groups.any_left


def test_working_group_resets_the_count_of_failed_spawns() -> None:
    groups = some_groups(start="spawn", groups=1, retries=1)
    for group in range(0, 20, 2):
        assert groups.to_spawn(9, 100.0 * group) == [group]
        assert groups.spawn_failed(group, 100.0 * group)
        assert groups.to_spawn(9, 100.0 * group + 50) == [group + 1]
        groups.spawned(group + 1)
        ask(groups, group + 1)
        groups.lose(group + 1)
    assert groups.given_up == 0


def test_place_is_abandoned_if_its_groups_never_request_work() -> None:
    groups = some_groups(start="spawn", groups=1, retries=2)
    for group in range(3):
        assert groups.to_spawn(9, 0.0) == [group] and groups.any_left
        groups.spawned(group)
        (groups.lose if group % 2 else groups.leave)(group)
    assert groups.to_spawn(9, 100.0) == [] and groups.given_up == 1 and not groups.any_left
