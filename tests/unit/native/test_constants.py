"""Constants that Python reads from C: read at first use, and complete for all that Python declares."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mpidata.config.data import FieldEntry
from mpidata.config.describe import kind
from mpidata.native import constants, event, structures


def test_every_declared_constant_is_defined() -> None:
    kinds = {"int": int, "str": str, "tuple[str, ...]": tuple}
    kinds |= {"Mapping[str, Dtype]": dict, "Mapping[str, tuple[str, ...]]": dict}
    for name, declared in constants.__annotations__.items():
        assert type(getattr(constants, name)) is kinds[declared], name
    assert len(constants.__annotations__) > 40
    with pytest.raises(AttributeError, match="no attribute 'NOTHING'"):
        getattr(constants, "NOTHING")  # noqa: B009


def test_every_c_event_has_a_python_reader() -> None:
    numbers = {row.name: row.number for row in constants.table()["number"] if row.name.startswith("EVENT_")}
    for name, number in numbers.items():
        read = event.read(structures.RawEvent(kind=number))
        assert type(read).__name__ == name.removeprefix("EVENT_").title().replace("_", "")
    assert set(numbers.values()) == set(event.readers())


def test_every_structure_matches_its_c_layout() -> None:
    groups = constants.table().keys() - {"status", "number", "text", "dtype", "has_statistics", "conversion"}
    assert {"mpidata_snapshot", "mpidata_event", "mpidata_taken"} < groups
    for name in groups:
        structures.structure(name)  # compares its size and offsets


def test_dtypes_match_numpy_and_torch() -> None:
    for name, dtype in constants.DTYPES.items():
        if name != "bfloat16":  # NumPy has no bfloat16
            assert np.dtype(name) == np.dtype(f"{dtype.kind}{dtype.size}")
        assert getattr(torch, name).itemsize == dtype.size
        assert dtype.has_statistics == (dtype.kind in "iuf")


def test_maximum_number_of_dimensions_matches_c() -> None:
    assert kind(FieldEntry.model_fields["shape"]).startswith(f"list of 0 to {constants.MAX_NDIM} whole numbers")
