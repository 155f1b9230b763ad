"""Conversions at put (convert.c) round once, ties to even; checked against NumPy, torch and all midpoints."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from mpidata.native import constants

SOURCES = Path(__file__).parents[3] / "c_api"
MANTISSA = {"float16": 10, "bfloat16": 7}
Convert = Callable[[str, str, npt.NDArray[Any]], npt.NDArray[Any]]


@pytest.fixture(scope="module")
def convert(tmp_path_factory: pytest.TempPathFactory) -> Convert:
    """Return a function that converts an array; floats of 16 bits are uint16."""
    library = tmp_path_factory.mktemp("convert") / "convert.so"
    folders = [f"-I{SOURCES / folder}" for folder in ("include", "src")]
    source = SOURCES / "src" / "dtypes" / "convert.c"
    options = ["-std=c11", "-O3", "-fPIC", "-shared", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-Wno-psabi"]
    subprocess.run(["gcc", *options, "-DMPIDATA_WITHOUT_MPI", *folders, source, "-o", library], check=True)
    find = ctypes.CDLL(str(library)).mpidata_conversion
    find.restype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)

    def run(source: str, target: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        function = find(constants.DTYPES[source].number, constants.DTYPES[target].number)
        values = np.ascontiguousarray(values)
        dtype = np.dtype("uint16" if target in MANTISSA else target)
        made = np.full((len(values) + 1) * dtype.itemsize, 77, np.uint8)
        function(made.ctypes.data, values.ctypes.data, len(values))
        assert (made[-dtype.itemsize :] == 77).all()
        return made[: -dtype.itemsize].view(dtype)

    return run


def all_of(dtype: str) -> npt.NDArray[np.float64]:
    """Return the numbers of all 65536 bit patterns."""
    patterns = np.arange(1 << 16, dtype=np.uint16)
    if dtype == "float16":
        return patterns.view(np.float16).astype(np.float64)
    return (patterns.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def rounded(values: npt.NDArray[np.float64], dtype: str) -> npt.NDArray[np.uint16]:
    """Return the nearest pattern of each value, by the float64 midpoints between positive numbers."""
    infinite = (0x7FFF >> MANTISSA[dtype]) << MANTISSA[dtype]
    numbers = all_of(dtype)[: infinite + 1]
    numbers[-1] = 2 * numbers[-2] - numbers[-3]  # the next one, if there were no infinity
    middle = (numbers[1:] + numbers[:-1]) / 2
    magnitude = np.abs(values)
    below = np.searchsorted(middle, magnitude, side="left")
    tie = (below < len(middle)) & (middle[np.minimum(below, len(middle) - 1)] == magnitude)
    nearest = np.where(tie & (below % 2 == 1), below + 1, below)
    return (nearest | np.signbit(values) << 15).astype(np.uint16)


def hard(dtype: str) -> npt.NDArray[np.float64]:
    """Return all numbers, all midpoints with their neighbours, and random bits, including NaN and infinities."""
    numbers = all_of(dtype)
    finite = np.unique(numbers[np.isfinite(numbers)])
    step = finite[-1] - finite[-2]
    finite = np.concatenate([[finite[0] - step], finite, [finite[-1] + step]])
    middle = (finite[1:] + finite[:-1]) / 2
    rng = np.random.default_rng(1)
    random = rng.integers(0, 1 << 64, 200_000, np.uint64).view(np.float64)
    near = np.exp2(rng.uniform(-160, 140, 200_000)) * rng.choice([-1, 1], 200_000)
    small = [5e-324, -5e-324, 2.0**-25, 2.0**-134, 1e308, -1e308, 65520.0, 65519.999, 3.4e38, 0.0, -0.0]
    beside = [np.nextafter(middle, -np.inf), np.nextafter(middle, np.inf)]
    return np.concatenate([numbers, middle, *beside, random, near, small])


def same(found: npt.NDArray[np.uint16], expected: npt.NDArray[np.uint16], values: npt.NDArray[Any], dtype: str) -> None:
    nan = np.isnan(values)
    wrong = ~nan & (found != expected)
    assert not wrong.any(), [
        (values[i].item().hex(), hex(found[i]), hex(expected[i])) for i in np.flatnonzero(wrong)[:5]
    ]
    assert np.isnan(all_of(dtype)[found[nan]]).all() and nan.any()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("source", ["float64", "float32"])
def test_floats_of_16_bits_are_rounded_once(convert: Convert, source: str, dtype: str) -> None:
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        values = hard(dtype).astype(source)
        found = convert(source, dtype, values)
        same(found, rounded(values.astype(np.float64), dtype), values, dtype)
        if dtype == "float16":
            same(found, values.astype(np.float16).view(np.uint16), values, dtype)
        elif source == "float32":  # torch converts float64 through float32
            made = torch.from_numpy(values).to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16)
            same(found, made, values, dtype)


def test_double_rounding_is_avoided(convert: Convert) -> None:
    value = np.array([1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-11 + 2.0**-40])
    assert convert("float64", "bfloat16", value)[0] == 0x3F81 != torch.from_numpy(value).bfloat16().view(torch.int16)[0]
    assert convert("float64", "float16", value)[1] == 0x3C01


def test_other_conversions_match_numpy(convert: Convert) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        values = hard("bfloat16")[:600_000]
        found = convert("float64", "float32", values)
        np.testing.assert_array_equal(found, values.astype(np.float32))
        pairs = values.view(np.complex128)
        np.testing.assert_array_equal(convert("complex128", "complex64", pairs), pairs.astype(np.complex64))
    assert convert("bool", "bool", np.arange(256, dtype=np.uint8)).view(np.uint8).tolist() == [0] + 255 * [1]


def test_only_listed_conversions_are_supported() -> None:
    assert constants.CONVERSIONS == {
        "float32": ("float64",),
        "float16": ("float64", "float32"),
        "bfloat16": ("float64", "float32"),
        "complex64": ("complex128",),
        "bool": ("bool",),
    }
