import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from mpidata.trainer.cancel.stream_methods import cancel


class Library:
    """Accepts even ids."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def mpidata_trainer_cancel(self, ids: int, n: int, taken: int, n_taken: Any) -> int:
        self.asked = list((ctypes.c_int64 * n).from_address(ids)) if n else []
        even = [one for one in self.asked if one % 2 == 0]
        for place, one in enumerate(even):
            ctypes.c_int64.from_address(taken + 8 * place).value = one
        n_taken._obj.value = len(even)
        return 0


@pytest.mark.parametrize(
    ("ids", "asked"),
    [
        (4, [4]),
        (np.int32(4), [4]),
        ([1, 2, np.int64(3)], [1, 2, 3]),
        ({6}, [6]),
        (range(3), [0, 1, 2]),
        ((one for one in (2, 4)), [2, 4]),
        ([], []),
        (np.array([]), []),
        (np.array([[1, 2], [3, 4]], np.uint8), [1, 2, 3, 4]),
        (np.array(7), [7]),
        (torch.tensor([5, 6]), [5, 6]),
        (torch.tensor(8), [8]),
        ([torch.tensor(8), 9], [8, 9]),
        ([-3, 1 << 70], [-1, -1]),
        (np.array([1 << 63], np.uint64), [-1]),
    ],
)
def test_integers_in_any_container_are_accepted(ids: Any, asked: list[int]) -> None:
    library = Library()
    assert cancel(SimpleNamespace(library=library), ids) == [one for one in asked if one % 2 == 0]  # type: ignore[arg-type]
    assert library.asked == asked


@pytest.mark.parametrize(
    "ids",
    [1.0, True, [1, 2.0], [True], "12", None, ["1"], [[1, 2]], np.array([1.5]), torch.tensor([0.5]), np.array([True])],
)  # fmt: skip
def test_ids_that_are_not_integers_are_refused(ids: Any) -> None:
    library = Library()
    with pytest.raises(TypeError, match="is not a simulation id. Give whole numbers"):
        cancel(SimpleNamespace(library=library), ids)  # type: ignore[arg-type]
    assert library.asked == []
