"""The function is called with full batches if many ranks ask."""

import pytest

from benchmarks.inference import RANKS, measure_batches


@pytest.mark.full
def test_most_function_calls_have_full_batches() -> None:
    """Sixteen ranks ask a function that takes 10 ms."""
    found = measure_batches(RANKS, 10.0)
    assert found["full"] >= 0.7 and found["rows"] <= RANKS, found
    assert measure_batches(RANKS // 2, 0.0)["full"] >= 0.7
    at_once = measure_batches(RANKS, 0.0)
    assert at_once["rows"] < found["rows"], at_once
