"""What server 0 reports about the samples of pushes that count."""

import numpy as np
import pytest

from mpidata.servers import trained_samples
from mpidata.servers.trained_samples import TrainedSamples, pack, unpack


def samples(*pairs: tuple[int, int]) -> "np.typing.NDArray[np.int64]":
    return np.array(pairs, np.int64).reshape(-1, 2)


def test_position_and_samples_are_unpacked_from_the_end_of_any_push() -> None:
    place = np.arange(32).reshape(16, 2)
    for before in (0, 3, 8):
        for drawn in (samples(), samples((3, 1), (4, 2))):
            push = np.concatenate([np.full(before, 255, np.uint8), pack(place, drawn)])
            found, again = unpack(push, place.nbytes)
            assert found.tolist() == place.reshape(-1).tolist() and again.tolist() == drawn.tolist()


def test_samples_of_each_push_are_reported_once_to_each_trainer() -> None:
    one = TrainedSamples(3)
    one.add(0, samples((1, 1)))
    assert [array.tolist() for array in one.take(2)] == [[[1, 1]], [[0, 1], [1, 0], [2, 0]]]
    one.add(1, samples((2, 1), (2, 2)))
    assert [array.tolist() for array in one.take(2)] == [[[2, 1], [2, 2]], [[0, 0], [1, 2], [2, 0]]]
    assert [array.tolist() for array in one.take(0)] == [[[1, 1], [2, 1], [2, 2]], [[0, 1], [1, 2], [2, 0]]]
    one.forget(1)
    one.add(0, samples((5, 5)))
    assert one.take(1)[0].tolist() == []


def test_memory_for_repeatedly_drawn_samples_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trained_samples, "_MANY", 4)
    one = TrainedSamples(1)
    for _ in range(100):
        one.add(0, samples((1, 1), (1, 2)))
    told, drawn = one.take(0)
    assert len(told) <= 8 and {tuple(pair) for pair in told.tolist()} == {(1, 1), (1, 2)}
    assert drawn.tolist() == [[0, 200]]


def test_joined_spare_gets_only_samples_after_the_change_that_added_it() -> None:
    one = TrainedSamples(2, spares=1)
    one.add(0, samples((1, 1)))
    one.change(3)
    one.add(0, samples((2, 2)))
    one.change(3)  # reported by another trainer
    one.joined(1)
    one.change(4)
    assert one.take(1)[0].tolist() == [[2, 2]]
