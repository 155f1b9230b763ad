"""What can be published, and what is refused with an error; outside a job nobody reads it."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from mpidata import StreamError, publish
from mpidata.errors import LibraryError, MpidataError
from mpidata.native import constants
from mpidata.trainer.published import publish as module


class Part:
    """Looks like a DTensor."""

    def full_tensor(self) -> None:
        raise AssertionError("this would be collective")


def test_publish_outside_a_job_checks_the_arrays_and_returns_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MPIDATA_RUN", raising=False)
    monkeypatch.setattr(module, "_first_alone", [])
    assert publish({"weight": torch.ones(3), "bias": np.zeros(())}) == 0
    with pytest.raises(StreamError, match="'weight' is a DTensor, and this trainer has only a part"):
        publish({"weight": Part()})


@pytest.mark.parametrize(
    ("status", "kind"), [(constants.ERR_ARGUMENT, StreamError), (constants.ERR_MEMORY, LibraryError)]
)
def test_publish_error_type_follows_the_library_status(
    monkeypatch: pytest.MonkeyPatch, status: int, kind: type[MpidataError]
) -> None:
    library = SimpleNamespace(mpidata_trainer_publish=lambda *_: status, mpidata_last_error=lambda: b"publish: differs")
    replica = SimpleNamespace(number=0, rank=0)
    trainer = SimpleNamespace(library=library, members=None, replica=replica)
    monkeypatch.setattr(module, "in_job", lambda: True)
    monkeypatch.setattr(module.join, "join", lambda: trainer)
    with pytest.raises(kind, match="publish: differs") as caught:
        publish({"w": torch.ones(3)})
    assert type(caught.value) is kind


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"w": np.ones(3, np.float32)}, "1 arrays, but the first call had 2"),
        ({"b": np.zeros(()), "w": np.ones(3, np.float32)}, "'b' is of float64 and shape [], but the first call had"),
        (
            {"w": np.ones(3), "b": np.zeros(())},
            "'w' is of float64 and shape [3], but the first call had 'w'",
        ),
        ({"w": np.ones(4, np.float32), "b": np.zeros(())}, "'w' is of float32 and shape [4], but the first call had"),
    ],
)
def test_publish_outside_a_job_refuses_arrays_unlike_the_first_call(
    monkeypatch: pytest.MonkeyPatch, arrays: Any, sentence: str
) -> None:
    monkeypatch.delenv("MPIDATA_RUN", raising=False)
    monkeypatch.setattr(module, "_first_alone", [])
    for _ in range(2):
        assert publish({"w": torch.ones(3), "b": np.zeros(())}) == 0
    with pytest.raises(StreamError, match="^publish: ") as caught:
        publish(arrays)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({}, "names no arrays"),
        ([1], "names no arrays"),
        ({1: np.ones(2)}, "1 cannot name an array"),
        ({"": np.ones(2)}, "the name of an array is empty. Give it one"),
        ({"a\0b": np.ones(2)}, r"the name 'a\x00b' contains a zero byte"),
        ({"é" * 64: np.ones(2)}, "has 128 bytes, at most 127 are possible"),
        ({"w": [1.0, 2.0]}, "'w' is of list, neither a tensor nor an array. Publish numpy.asarray(...) of it"),
        ({"w": 1.0}, "'w' is of float, neither a tensor nor an array"),
        ({"w": "text"}, "'w' is of str"),
        ({"w": object()}, "'w' is object, which NumPy converts to an array of objects"),
        ({"w": torch.ones(2).to(torch.float8_e4m3fn)}, "'w' is of float8_e4m3fn, a dtype that fields do not support"),
        ({"w": np.ones(2, np.longdouble)}, "'w' is of float128, a dtype that fields do not support"),
        ({"w": np.ones((1,) * 7)}, "'w' has 7 dimensions, at most 6 are possible"),
    ],
)
def test_publish_refuses_invalid_names_and_arrays(arrays: Any, sentence: str) -> None:
    with pytest.raises(StreamError, match="^publish: ") as caught:
        publish(arrays)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("values", "name", "bits"),
    [
        (torch.arange(6.0, requires_grad=True).reshape(2, 3).T, "float32", None),
        (torch.tensor(7), "int64", None),
        (torch.tensor([1.5, -2.0], dtype=torch.bfloat16), "bfloat16", [0x3FC0, 0xC000]),
        (torch.tensor([True, False]), "bool", None),
        (torch.ones(0, 4, dtype=torch.complex64), "complex64", None),
        (np.arange(8, dtype=">i4")[::2], "int32", None),
    ],
)
def test_published_copy_is_contiguous_and_equals_the_values(values: Any, name: str, bits: list[int] | None) -> None:
    for copies in (True, False):
        array = module._array("w", values, copies)
        assert array.shape == tuple(values.shape) and module.dtype_name(array.dtype) == name
    copied = module._array("w", values, True)
    assert copied.flags.c_contiguous and copied.dtype.isnative
    if bits is not None:
        assert copied.view(np.uint16).tolist() == bits
    else:
        assert (copied == np.asarray(values.detach() if hasattr(values, "detach") else values)).all()
