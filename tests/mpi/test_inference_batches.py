"""How full the calls of the function are where many ranks ask."""

import pytest

from benchmarks.inference import RANKS, measure_batches


@pytest.mark.full
def test_calls_have_a_row_of_each_rank() -> None:
    """Sixteen ranks, a function of 10 ms."""
    found = measure_batches(10.0)
    assert found["full"] >= 0.7 and found["rows"] <= RANKS, found
    at_once = measure_batches(0.0)
    assert at_once["rows"] < found["rows"], at_once
