"""Which simulations are complete according to the ledgers of a checkpoint."""

import numpy as np
import pytest

from mpidata.checkpoint.ledgers import Ledger, complete_steps


def _ledger(bits: list[int], whole: int = 0) -> Ledger:
    """Return a ledger of two simulations: one of 70 steps with these bits, one with an unknown number of steps."""
    words = np.zeros(2, np.uint64)
    for bit in bits:
        words[bit // 64] |= np.uint64(1) << np.uint64(bit % 64)
    arrays = {"steps": [70, -1], "whole": [whole, 0], "complete": [1, 0], "words": [2, 0]}
    return {name: np.array(values) for name, values in arrays.items()} | {"bits": words}


@pytest.mark.parametrize(
    ("first", "second", "span", "complete"),
    [
        (_ledger(list(range(0, 70, 2))), _ledger(list(range(1, 70, 2))), 0, True),
        (
            _ledger(list(range(0, 69, 2))),
            _ledger(list(range(1, 69, 2))),
            0,
            False,
        ),  # step 69 is missing: its trainer may have just joined
        (_ledger(list(range(0, 69, 2))), _ledger(list(range(1, 69, 2))), 1, True),
        (_ledger([69], whole=69), _ledger([]), 0, True),
        (_ledger([], whole=69), _ledger([68]), 0, False),
    ],
)
def test_elastic_simulation_is_complete_if_each_step_is_in_a_ledger(
    first: Ledger, second: Ledger, span: int, complete: bool
) -> None:
    assert complete_steps([first, second]).tolist() == [70, -1]
    assert complete_steps([first, second], 1, span).tolist() == [70 if complete else -1, -1]
