"""Published data on its way to a sampler: requested once before each use, and read as arrays."""

import ctypes

import numpy as np
import pytest

from mpidata.native import constants, structures
from mpidata.sampling.learner.published import Contents, Newest, read


def contents(version, **arrays):
    head = ctypes.sizeof(structures.Contents) + len(arrays) * ctypes.sizeof(structures.PublishedArray)
    table, values, at = [], b"", head
    for name, array in arrays.items():
        values += b"\0" * (-at % 64)
        at += -at % 64
        number = constants.DTYPES["bfloat16" if array.dtype.names else array.dtype.name].number
        one = structures.PublishedArray(name=name.encode(), dtype=number, ndim=array.ndim, at=at)
        one.shape[: array.ndim] = array.shape
        table.append(bytes(one))
        values += array.tobytes()
        at += array.nbytes
    described = structures.Contents(version=version, n=len(arrays), bytes=at)
    return Contents(version, memoryview(bytearray(bytes(described) + b"".join(table) + values)))


def test_contents_are_read_as_read_only_arrays():
    bits = np.array([(1,), (2,)], [("bfloat16", np.uint16)])
    given = {"a": np.arange(6.0).reshape(2, 3), "b": np.array(3, np.int8), "c": np.empty((0, 2), np.float32), "d": bits}
    given["e"] = np.array([True, False])
    found = read(contents(7, **given))
    assert found is not None and found.version == 7 and list(found) == list(given) and len(found) == 5
    for name, array in given.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        assert (found[name] == array).all()
    with pytest.raises(ValueError, match="read-only"):
        found["a"][0] = 1
    assert read(None) is None


class Trainers:
    def __init__(self):
        self.asked, self.answer = [], False

    def ask_published(self, version):
        self.asked.append(version)

    def published(self):
        answer, self.answer = self.answer, False
        return answer


def test_each_use_requests_newer_contents_once():
    trainers = Trainers()
    newest = Newest(trainers)
    assert not newest.is_here() and not newest.is_here() and trainers.asked == [0]
    trainers.answer = None
    assert newest.is_here() and newest.contents is None
    assert not newest.is_here() and trainers.asked == [0, 0]
    trainers.answer = 3, memoryview(b"")
    assert newest.is_here() and newest.contents == (3, b"")
    assert not newest.is_here() and trainers.asked == [0, 0, 3]
    trainers.answer = None
    assert newest.is_here() and newest.contents == (3, b"")
