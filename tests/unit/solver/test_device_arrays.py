"""What objects declare about an array in device memory is checked before use."""

from typing import Any

import numpy as np
import pytest

from mpidata.solver.device_arrays import device_array


def told(**changes: Any) -> Any:
    said = {"shape": (5,), "typestr": np.dtype(float).str, "data": (4096, False), "version": 3, "strides": None}
    return type("Array", (), {"__cuda_array_interface__": said | changes})()


def test_valid_device_array_is_accepted() -> None:
    array = device_array(told(shape=(2, np.int64(3)), strides=(48, 16), stream=7))
    assert array is not None and (array.address, array.shape, array.strides, array.stream) == (
        4096,
        (2, 3),
        (48, 16),
        7,
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"typestr": np.dtype(float).newbyteorder().str}, "another byte order than this machine"),
        ({"mask": told()}, "it has a mask"),
        ({"data": (1.5, False)}, "integer"),
        ({"data": (1 << 70, False)}, "its address is 1180591620717411303424"),
        ({"data": (-8, False)}, "its address is -8"),
        ({"shape": (5.0,)}, "integer"),
        ({"strides": ("x",)}, "integer"),
    ],
)
def test_invalid_device_arrays_are_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises((TypeError, ValueError), match=sentence):
        device_array(told(**changes))
