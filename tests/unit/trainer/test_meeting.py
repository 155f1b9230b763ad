"""What a meeting of trainers and spares decides, whoever has died."""

import numpy as np
import pytest

from mpidata.errors import StreamError
from mpidata.trainer.elastic.change import among, without
from mpidata.trainer.elastic.meeting import MOST_DATASETS, Decision, Row, decide


def row(own: int, numbers: list[int], order: tuple[int, int], *, holes: tuple[int, ...] = (), **more: object) -> Row:
    place = np.full((MOST_DATASETS, 2), more.pop("place", 0), np.int64)
    generation = 3 if own in numbers else -1
    may_join = bool(more.pop("may_join", True))
    return Row(own, generation, order, may_join, numbers, list(holes), place)


def met(living: list[int], numbers: list[int], wanted: int, *, holes: tuple[int, ...] = ()) -> Decision:
    return decide([row(own, numbers, (1, wanted), holes=holes) for own in living])


def test_row_is_unchanged_by_packing_and_unpacking() -> None:
    sent = row(4, [0, 2], (7, 3), holes=(1,), place=5)
    came = Row.unpack(sent.pack(6), 6)
    assert (came.places == sent.places).all()
    assert (came.own, came.order, list(came.numbers), list(came.holes)) == (4, (7, 3), [0, 2], [1])
    assert came.may_join and came.generation == -1


def test_spare_replaces_a_lost_trainer_and_its_stand_in_regains_its_number() -> None:
    numbers = without([0, 1, 2, 3], [1])
    assert numbers == [0, 3, 2]
    decision = met([0, 2, 3, 4, 5], numbers, 4, holes=(1,))
    assert (decision.numbers, decision.joined, decision.holes) == ([0, 4, 2, 3], [4], [])
    assert decision.lost == [] and decision.retired == [] and decision.order == 1


def test_trainer_that_died_meanwhile_is_lost_before_a_spare_joins() -> None:
    decision = met([1, 2, 4], [0, 1, 2], 3)
    assert decision.lost == [0] and decision.joined == [4]
    assert decision.numbers == [4, 1, 2]


def test_hole_remains_if_there_are_too_few_spares() -> None:
    decision = met([2, 3, 4], [3, 2], 4, holes=(0, 1))
    assert (decision.numbers, decision.holes) == ([3, 4, 2], [0])


def test_additional_trainers_get_the_next_numbers() -> None:
    assert met([0, 1, 2, 3], [0, 1], 4).numbers == [0, 1, 2, 3]


def test_trainers_with_the_highest_numbers_retire() -> None:
    decision = met([0, 1, 2, 3], [0, 3, 2], 2)
    assert (decision.numbers, decision.retired, decision.joined) == ([0, 3], [2], [])


def test_newest_order_is_carried_out() -> None:
    rows = [row(0, [0], (1, 1)), row(1, [0], (2, 2)), row(2, [0], (0, 0))]
    assert decide(rows).order == 2 and decide(rows).joined == [1]


def test_no_trainer_joins_or_retires_at_the_end_of_the_job() -> None:
    decision = decide([row(0, [0, 1], (4, -1)), row(1, [0, 1], (4, -1)), row(2, [0, 1], (4, -1))])
    assert decision.numbers == [0, 1] and decision.joined == decision.retired == []


@pytest.mark.parametrize("other", [{"place": 1}, {"may_join": False}])
def test_no_spare_joins_unless_positions_match_and_data_can_be_divided(other: dict[str, object]) -> None:
    decision = decide([row(0, [0, 1], (1, 3)), row(1, [0, 1], (1, 3), **other), row(2, [0, 1], (1, 3))])
    assert decision.numbers == [0, 1] and decision.joined == [] and decision.order == -1
    assert decision.alike == ("place" not in other) and (decision.places == other.get("place", 0)).all()


def test_meeting_fails_if_all_trainers_with_the_state_have_died() -> None:
    with pytest.raises(StreamError, match="no rank has their state"):
        met([2, 3], [0, 1], 2)


def test_numbers_stay_unique_after_repeated_losses_and_joins() -> None:
    numbers, holes = list(range(5)), []
    for lost in ([3], [0, 1], [0]):
        holes += lost
        numbers = without(numbers, lost)
    assert len(numbers) == 1
    numbers, holes = among(numbers, [7, 8, 9, 10, 11], holes)
    assert sorted(numbers[:5]) == sorted({*numbers[:5]}) and len(numbers) == 6 and holes == []
