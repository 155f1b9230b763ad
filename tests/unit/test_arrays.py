"""Arrays of a user's program are taken with all their values, or refused with an error."""

import array
import enum
import warnings
from collections import deque

import ml_dtypes
import numpy as np
import pyarrow
import pytest
import scipy.sparse
import torch

from mpidata.arrays import NotPlainError, plain_array, plain_floats, plain_number
from mpidata.dtypes import BITS_OF_BFLOAT16, dtype_name

NAN = np.nan


class Unit:
    """As in pint, astropy and others."""

    def __str__(self):
        return "metre"


class Quantity:
    """As in pint: NumPy would take its values and drop the unit."""

    units = Unit()

    def __init__(self, values):
        self.magnitude = values

    def __array__(self, dtype=None, copy=None):
        warnings.warn("The unit of the quantity is stripped.", stacklevel=2)
        return np.asarray(self.magnitude)


class Ratio(Quantity):
    """As in pint, without a unit to lose."""

    class units:
        def __str__(self):
            return "dimensionless"

    units = units()


class WithUnit(np.ndarray):
    """As in astropy, and in unyt if the object has a unit."""

    unit = Unit()


class Holds:
    """Returns to NumPy whatever it holds."""

    def __init__(self, held):
        self.held = held

    def __array__(self, dtype=None, copy=None):
        return self.held


class Labelled(Holds):
    """As in xarray: attributes of the file, and labels, appear as its own attributes."""

    dims = ("x",)

    @property
    def data(self):
        return self.held

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.held)

    def __getattr__(self, name):
        if name in ("units", "unit", "mask"):
            return Unit()
        raise AttributeError(name)


class Variable(Holds):
    """As in netCDF4: its unit is a text, its mask controls how it is read, and it returns a masked array."""

    units, mask = "m", True


class Masked(Holds):
    """Has a mask beside its values."""

    def __init__(self, held, mask):
        super().__init__(held)
        self.mask = np.array(mask)


class Series(Holds):
    """As in pandas: `mask` is a method."""

    def mask(self):
        raise AssertionError


class Choice(enum.IntEnum):
    ONE = 1


def masked(values, *places, **more):
    made = np.ma.array(values, mask=np.zeros(np.shape(values), bool), **more)
    for place in places:
        made[place] = np.ma.masked
    return made


BASE = np.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize(
    ("values", "expected", "dtype"),
    [
        (BASE, BASE, "float64"),
        (BASE.T[::-1, ::2], BASE.T[::-1, ::2], "float64"),
        (np.broadcast_to(np.float32(2), (3,)), [2, 2, 2], "float32"),
        (BASE.astype(">f4"), BASE, ">f4"),
        (np.matrix([[1.0, 2.0]]), [[1, 2]], "float64"),
        (np.rec.fromarrays([[1.5], [2]], names="unit,mask").unit, [1.5], "float64"),
        (array.array("f", [1.5, 2]), [1.5, 2], "float32"),
        (memoryview(np.arange(3, dtype=np.uint8)), [0, 1, 2], "uint8"),
        (range(3), [0, 1, 2], "int64"),
        (deque([1.5, 2]), [1.5, 2], "float64"),
        (Ratio([1.5, 2]), [1.5, 2], "float64"),
        (((1, 2.5), [3, 4]), [[1, 2.5], [3, 4]], "float64"),
        ([np.float32(1), np.float32(2)], [1, 2], "float32"),
        ([], [], "float64"),
        # torch
        (torch.ones(2, requires_grad=True), [1, 1], "float32"),
        (torch.nn.Parameter(torch.ones(2)), [1, 1], "float32"),
        ([torch.ones(2, requires_grad=True)] * 2, [[1, 1], [1, 1]], "float32"),
        (torch.imag(torch.tensor([1 + 2j]).conj()), [-2], "float32"),
        (torch.arange(6).reshape(2, 3).T, [[0, 3], [1, 4], [2, 5]], "int64"),
        # others
        (pyarrow.array([1.5, 2]), [1.5, 2], "float64"),
        (Series(BASE), BASE, "float64"),
        (Labelled(BASE), BASE, "float64"),
        (Labelled(masked([1.0, 2.0], 0)), [NAN, 2], "float64"),
        (Variable(masked([1.0, 2.0], 1)), [1, NAN], "float64"),
        # masks
        (np.ma.array([1.0, 2.0]), [1, 2], "float64"),
        (masked([1, 2]), [1, 2], "int64"),
        (masked(np.float32([1, 2, 3]), 1), [1, NAN, 3], "float32"),
        (masked([1.0, 2.0], 1, hard_mask=True, fill_value=9e36), [1, NAN], "float64"),
        (masked(BASE, (1, slice(None))), [BASE[0], [NAN] * 4, BASE[2]], "float64"),
        (masked(np.float32([1, 2, 3]).astype(">f4"), 1), [1, NAN, 3], ">f4"),
        (masked(1.0), 1, "float64"),
        (np.ma.masked, NAN, "float64"),
        ([1.0, np.ma.masked], [1, NAN], "float64"),
        ([masked([1.0, 2.0], 0), [3, 4]], [[NAN, 2], [3, 4]], "float64"),
        (Holds(masked([1.0, 2.0], 0)), [NAN, 2], "float64"),
        (Masked(np.array([1.0, 2.0]), [True, False]), [NAN, 2], "float64"),
    ],
)
def test_arrays_are_converted_with_all_values(values, expected, dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = plain_array(values)
    assert type(made) is np.ndarray and made.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(made, expected)


def test_memory_is_shared_and_never_changed():
    for one in (BASE, masked(BASE), torch.ones(3, requires_grad=True)):
        assert np.shares_memory(plain_array(one), one.detach().numpy() if isinstance(one, torch.Tensor) else one)
    one = masked([1.0, 2.0], 0, fill_value=7.0)
    plain_array(one)
    assert one.data.tolist() == [1, 2] and one.fill_value == 7


UNIT = "whose unit, 'metre', would be lost"


@pytest.mark.parametrize(
    ("values", "dtype", "why"),
    [
        (Quantity([1.0]), None, UNIT),
        (np.ones(2).view(WithUnit), None, UNIT),
        ([Quantity(1.0), Quantity(2.0)], None, UNIT),
        ([[1.0, np.ones(()).view(WithUnit)]], None, UNIT),
        (Labelled(Quantity([1.0])), None, UNIT),
        (Holds(np.ones(2).view(WithUnit)), None, UNIT),
        (masked([1, 2], 0), None, "1 masked elements, and int64 has no NaN"),
        (masked(np.zeros((2, 3), np.uint8), 0), "uint8", "3 masked elements, and uint8 has no NaN"),
        (np.ma.masked, "int32", "1 masked elements, and int32 has no NaN"),
        ([masked([1, 2], 0), masked([1, 2])], None, "1 masked elements, and int64 has no NaN"),
        (Masked(np.array([1, 2]), [True, False]), None, "1 masked elements, and int64 has no NaN"),
        (torch.ones(2).to_sparse(), None, "Sparse"),
        (torch.ones(2, device="meta"), None, "no data"),
        ([[1, 2], [3]], None, "cannot convert .*inhomogeneous"),
        (scipy.sparse.csr_array(np.eye(3)), None, "an array of objects"),
        ({1.0, 2.0}, None, "an array of objects"),
        ({"a": 1}, None, "an array of objects"),
        ((i for i in range(3)), None, "an array of objects"),
        (None, None, "an array of objects"),
        ([1.0, None], None, "an array of objects"),
        (np.array([1.0, 2.0], object), None, "an array of objects"),
        (300, "uint8", "^the int 300, which uint8 does not hold"),
        (-1, "uint8", "^the int -1, which uint8 does not hold"),
        (1 << 31, "int32", "^the int 2147483648, which int32 does not hold"),
        (1 << 63, "int64", "which int64 does not hold"),
        (10**39, "float32", "which float32 does not hold"),
        (2, "bool", "^the int 2, which bool does not hold"),
        (-129, "int8", "^the int -129, which int8 does not hold"),
        (1 << 64, "uint64", "which uint64 does not hold"),
        (65505, "float16", "^the int 65505, which float16 does not hold"),
        ((1 << 128) - (1 << 120) + 1, "bfloat16", "which bfloat16 does not hold"),
        (10**39, "complex64", "which complex64 does not hold"),
        (masked([1.0, 2.0], 0), "bool", "1 masked elements, and bool has no NaN"),
        pytest.param(10**5000, "float64", "^an int of 16610 bits, which float64 does not hold", id="huge"),
        pytest.param(10**5000, None, "which float64 does not hold", id="huge alone"),
    ],
)
def test_values_that_would_lose_information_are_refused(values, dtype, why):
    with pytest.raises(NotPlainError, match=why) as caught:
        plain_array(values, dtype)
    assert caught.value.advice.endswith(".") and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "dtype", "made"),
    [
        (255, "uint8", "uint8"),
        (-(1 << 31), "int32", "int32"),
        (True, "int32", "int32"),
        (Choice.ONE, "uint8", "uint8"),
        (3, "float32", "float64"),
        (False, "float64", "float64"),
        ((1 << 24) + 1, "float64", "float64"),
        (7, None, "int64"),
        (1 << 64, None, "float64"),
        (True, "bool", "bool"),
        (0, "bool", "bool"),
        (-128, "int8", "int8"),
        ((1 << 64) - 1, "uint64", "uint64"),
        (65504, "float16", "float64"),
        ((1 << 128) - (1 << 120), "bfloat16", "float64"),
        (3, "complex64", "complex128"),
        # all others by their own dtype
        (2.5, "int32", "float64"),
        (2j, "float32", "complex128"),
        (np.int64(3), "int32", "int64"),
        (np.float64(3), "int32", "float64"),
        (np.True_, "int32", "bool"),
        ([1, 2], "int32", "int64"),
    ],
)
def test_python_numbers_become_arrays_of_the_expected_dtype(value, dtype, made):
    result = plain_array(value, dtype)
    assert result.dtype == made and (result == value).all() and result.shape == np.shape(value)


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_bfloat16_tensors_are_converted(lost):
    tensor = torch.arange(6, dtype=torch.bfloat16).reshape(2, 3).T.requires_grad_()
    values = (tensor, [tensor, tensor], tensor[1, 1])[lost]
    made = plain_array(values, "bfloat16")
    assert made.dtype == BITS_OF_BFLOAT16 and dtype_name(made.dtype) == "bfloat16"
    expected = (tensor, torch.stack([tensor, tensor]), tensor[1, 1])[lost]
    assert made.shape == expected.shape
    found = torch.from_numpy(np.ascontiguousarray(made).view(np.uint16)).view(torch.bfloat16)
    assert torch.equal(found.reshape(expected.shape), expected)
    assert plain_floats(values).tolist() == expected.tolist()


def test_ml_dtypes_arrays_are_used_directly():
    values = np.array([1.5, -2], ml_dtypes.bfloat16)
    made = plain_array(values, "bfloat16")
    assert made is values and dtype_name(made.dtype) == "bfloat16"
    assert np.require(made, made.dtype.newbyteorder("="), ["C", "A"]).tobytes() == values.tobytes()


@pytest.mark.parametrize("value", [1, 1.5, "1.5", True, np.float32(1.5), torch.tensor([1.5]), np.array(2), masked(3)])
def test_scalars_are_accepted_as_times(value):
    assert plain_number(value) == float(value if not isinstance(value, torch.Tensor) else value.item())


@pytest.mark.parametrize(
    "value",
    [
        *(Quantity(1.0), np.ones(()).view(WithUnit), 1j, np.complex64(1 + 1j), np.timedelta64(5, "ns")),
        *(np.datetime64(5, "ns"), None, "now", [1.0], np.ones(2), torch.ones(2)),
    ],
)
def test_other_values_are_refused_as_times(value):
    with pytest.raises((TypeError, ValueError, OverflowError, RuntimeError)):
        plain_number(value)


def test_plain_floats_copies_and_converts_to_float64():
    one = np.ones(2)
    assert not np.shares_memory(plain_floats(one), one)
    for values in ([1, "2"], np.array([1, 2.0], object), torch.tensor([1, 2]), np.array([1, 2], "f2")):
        assert plain_floats(values).tolist() == [1, 2] and plain_floats(values).dtype == np.float64
    np.testing.assert_array_equal(plain_floats([np.ma.masked, 2]), [NAN, 2])
    for values in (Quantity([1.0]), [1j], np.ones(2, "m8[s]"), ["a"], {}, masked([1, 2], 0)):
        with pytest.raises((TypeError, ValueError)):
            plain_floats(values)
