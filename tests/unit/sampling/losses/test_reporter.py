"""A trainer's losses by simulation: what is reported, how often, and what is refused."""

import numpy as np
import pytest
import torch
from fake_library import FakeLibrary

from mpidata.errors import StreamError
from mpidata.native.constants import ERR_AGAIN as AGAIN
from mpidata.native.constants import SUCCESS
from mpidata.sampling.losses.reporter import LossReporter
from mpidata.sampling.losses.table import LossTable


@pytest.fixture
def library():
    return FakeLibrary()


@pytest.fixture
def clock():
    return [0.0]


@pytest.fixture
def telling(library, clock):
    return LossReporter(library, 4, lambda: clock[0])


def test_losses_are_summed_by_simulation_and_reported_once_a_second(library, telling, clock):
    first, second = np.array([1.0, 3.0, 2.0, 6.0]), np.array([5.0, 1.0])
    for at, batch, values in ((0.0, [0, 2, 0, 3], first), (0.9, [2, 2], second)):
        clock[0] = at
        assert telling.take({"simulation": torch.tensor(batch)}, values) == SUCCESS
    assert library.losses == []
    clock[0] = 1.0
    telling.take({"simulation": torch.tensor([1])}, torch.tensor([7.0], dtype=torch.bfloat16, requires_grad=True))
    (told,) = library.losses
    assert told["simulation"].tolist() == [0, 1, 2, 3] and told["count"].tolist() == [2, 1, 3, 1]
    assert told["sum"].tolist() == [3.0, 7.0, 9.0, 6.0] and told["max"].tolist() == [2.0, 7.0, 5.0, 6.0]
    assert told["last"].tolist() == [2.0, 7.0, 1.0, 6.0]
    excess = np.maximum(0.0, (first - first.mean()) / first.std())
    np.testing.assert_allclose(told["excess"], [0.0, 0.0, 1.0, excess[3]])  # 5 in (5, 1) is one deviation above
    logs = np.log(first) - np.log(first).mean()
    above = np.log(5.0) / 2  # the distance of log 5 from the mean of log 5 and log 1
    np.testing.assert_allclose(told["difficulty"], [logs[0] + logs[2], 0.0, logs[1] + above - above, logs[3]])
    telling.take({"simulation": torch.tensor([1])}, [7.0])
    assert len(library.losses) == 1
    telling.end()
    assert len(library.losses) == 2 and telling.end() == SUCCESS and len(library.losses) == 2


def test_losses_refused_by_the_scheduler_are_reported_later(library, telling, clock):
    library.losses_status = AGAIN
    for clock[0] in (1.0, 2.0, 3.0):
        assert telling.take({"simulation": [2, 1]}, [clock[0], 0.5]) == SUCCESS
    telling.end()
    (told,) = library.losses
    assert [one[:7] for one in told.tolist()] == [(1, 3, 0, 1.5, 0.5, 0.5, 0.0), (2, 3, 0, 6.0, 3.0, 3.0, 3.0)]
    np.testing.assert_allclose(told["difficulty"], np.log(2.0 * 4.0 * 6.0) / 2 * np.array([-1.0, 1.0]))


def test_zero_and_negative_losses_have_a_finite_difficulty(library, telling):
    telling.take({"simulation": [0, 1]}, [0.0, 2.0])
    telling.take({"simulation": [2, 3]}, [0.0, 0.0])
    telling.take({"simulation": [2, 3]}, [-1.0, 4.0])
    telling.end()
    (told,) = library.losses
    np.testing.assert_allclose(told["difficulty"], [-np.log(2e4) / 2, np.log(2e4) / 2, 0.0, 0.0])  # 1e-4 of the mean


def test_non_finite_losses_are_only_counted(library, telling):
    telling.take({"simulation": [0, 0, 1, 2, 2]}, [1.0, np.nan, np.inf, 1e200, 3.0])
    telling.end()
    (told,) = library.losses
    assert told["count"].tolist() == [1, 0, 1] and told["not_finite"].tolist() == [1, 1, 1]
    assert told["sum"].tolist() == [1.0, 0.0, 3.0] and told["max"].tolist() == [1.0, 0.0, 3.0]
    assert told["excess"].tolist() == [0.0, 0.0, 1.0]  # from the two finite losses


@pytest.mark.parametrize(
    ("batch", "values", "sentence"),
    [
        ({"simulation": [0, 1]}, [1.0], r"the values have shape \[1\], but the batch's 'simulation' has \[2\]"),
        ({"simulation": [0, 1]}, 1.0, r"shape \[\], but"),
        ({"simulation": 1}, 1.0, r"shape \[B\]"),
        ({"x": [0]}, [1.0], "has no 'simulation'"),
        (torch.ones(3), [1.0], "has no 'simulation'"),
        ({"simulation": [4]}, [1.0], "other values than ids from 0 to 3"),
        ({"simulation": [0.5]}, [1.0], "other values than ids"),
        ({"simulation": [0]}, ["low"], "list is not an array of numbers"),
        (
            {"simulation": [0]},
            torch.ones(1, dtype=torch.complex64),
            "Tensor is not an array of numbers: complex64 is not a dtype",
        ),
        ({"simulation": [0]}, None, "NoneType is not an array of numbers: None. Give one of shape"),
        (
            {"simulation": [0]},
            [1j],
            "list is not an array of numbers: complex128 is not a dtype of real numbers. Give one",
        ),
        ({"simulation": [0]}, np.ma.array([3], mask=True), "1 masked elements, and int64 has no NaN"),
        ({"simulation": [None]}, [1.0], "which NumPy converts to an array of objects"),
    ],
)
def test_invalid_losses_are_refused_in_one_sentence(library, telling, batch, values, sentence):
    with pytest.raises(StreamError, match=f"^losses: .*{sentence}"):
        telling.take(batch, values)
    telling.end()
    assert library.losses == []


def test_table_sums_the_losses_of_several_trainers(library, telling, tmp_path):
    other, table = LossReporter(library, 4), LossTable()
    assert table.summary() == {}
    table.write(tmp_path / "losses.csv")
    assert not list(tmp_path.iterdir())
    telling.take({"simulation": [3, 1]}, [-2.0, -4.0])
    other.take({"simulation": [3, 0]}, [8.0, np.nan])
    for one in (telling, other):
        one.end()
    for told in library.losses:
        table.add(told)
    assert table.summary() == {"simulations": 3, "count": 3, "mean": 2.0 / 3.0, "max": 8.0, "not_finite": 1}
    table.write(tmp_path / "losses.csv")
    assert (tmp_path / "losses.csv").read_text().splitlines() == [
        "simulation,count,mean,max,last,excess,not_finite,difficulty",
        "0,0,0.0,0.0,0.0,0.0,1,0.0",
        "1,1,-4.0,-4.0,-4.0,0.0,0,0.0",
        "3,2,3.0,8.0,8.0,0.5,0,0.0",
    ]


def test_table_is_restored_from_its_state(library, telling):
    table, restored = LossTable(), LossTable()
    telling.take({"simulation": [3, 1]}, [-2.0, -4.0])
    telling.end()
    table.add(library.losses[0])
    assert restored.restore(table.state(), 4) and restored.state() == table.state()
    earlier, of_earlier = table.state(), LossTable()
    del earlier["difficulty"]
    assert of_earlier.restore(earlier, 4) and of_earlier.state() == {**earlier, "difficulty": [0.0, 0.0]}
    assert restored.restore({}, 4) and LossTable().restore(LossTable().state(), 0)
    damaged = [
        {**table.state(), "simulation": [4, 1]},
        {**table.state(), "count": [1]},
        {**table.state(), "count": [-1, 1]},
        {**table.state(), "sum": [1.0, None]},
        {**table.state(), "max": ["x", 1.0]},
        {**table.state(), "difficulty": [0.0, float("nan")]},
        {"simulation": [1]},
        [1, 2],
    ]
    for state in damaged:
        assert not LossTable().restore(state, 4), state
