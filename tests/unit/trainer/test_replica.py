"""Parts of replicas that need no job: batches in messages, constants that are kept, mates that come late."""

import ctypes

import numpy as np
import pytest
import torch

from mpidata.run import deadlines
from mpidata.trainer.replica import link, tensors
from mpidata.trainer.replica.constants import MateConstants
from mpidata.trainer.replica.lateness import LateMates
from mpidata.trainer.replica.library import MateLibrary
from mpidata.trainer.replica.records import Facts


class Received(link.Incoming):
    """A message whose large arrays have already arrived."""

    def __init__(self, packed: link.Bytes, large: list[link.Bytes]) -> None:
        class Link:
            def fill(self, source: int, tag: int, places: list[link.Bytes]) -> None:
                for place, array in zip(places, large, strict=True):
                    place[:] = array

        super().__init__(Link(), 0, 0, packed)  # type: ignore[arg-type]


def through(given: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    described, arrays = tensors.describe(given)
    message = Received(*link._pack(b"head", arrays))
    assert bytes(message.head) == b"head"
    return tensors.TensorMemory().receive([described], message)[0]


@pytest.mark.parametrize("n", [0, 1, 5, 1 << 14, (1 << 14) + 1, 100_000])
def test_received_tensors_are_bitwise_identical(n: int) -> None:
    """Small tensors are in the message of the head, large ones follow it, in any order."""
    given = {
        "bytes": torch.randint(0, 255, (n,), dtype=torch.uint8),
        "floats": torch.randn(3, n).to(torch.bfloat16),
        "scalar": torch.tensor(7, dtype=torch.int64),
        "truth": torch.rand(n, 2) < 0.5,
        "complex": torch.randn(2, 2, dtype=torch.complex64),
        "column": torch.randn(n, 4, dtype=torch.float64)[:, 1],  # not contiguous
        "nothing": torch.empty(0, 3),
    }
    came = through(given)
    assert list(came) == list(given)
    for name, tensor in given.items():
        assert (came[name].dtype, came[name].shape) == (tensor.dtype, tensor.shape), name
        assert torch.equal(came[name], tensor), name


def test_nested_tensors_of_one_length_share_their_offsets() -> None:
    offsets = torch.tensor([0, 2, 5])
    make = torch.nested.nested_tensor_from_jagged
    given = {"a": make(torch.randn(5, 3), offsets), "b": make(torch.randn(5), offsets)}
    came = through(given)
    assert came["a"].offsets() is came["b"].offsets() and torch.equal(came["a"].offsets(), offsets)
    for name, tensor in given.items():
        assert torch.equal(came[name].values(), tensor.values())
    assert (came["a"] + came["b"][..., None]).shape[0] == 2  # both have one structure


def test_batch_memory_is_reused_when_nothing_refers_to_it() -> None:
    described, arrays = tensors.describe({"u": torch.arange(50_000.0)})
    memory = tensors.TensorMemory()
    packed, large = link._pack(b"", arrays)
    first = memory.receive([described], Received(packed, large))[0]["u"]
    second = memory.receive([described], Received(packed, large))[0]["u"]
    assert first.data_ptr() != second.data_ptr()
    at = first.data_ptr()
    del first
    assert memory.receive([described], Received(packed, large))[0]["u"].data_ptr() == at


def test_mate_keeps_constants_of_the_64_most_recent_simulations() -> None:
    kept = MateConstants()
    for simulation in range(100):
        kept.take([simulation], {simulation: {"x": torch.tensor(simulation)}})
    found = {simulation for simulation in range(100) if kept.find(simulation) is not None}
    assert found == set(range(36, 100))
    kept.take([36, 100], {100: {"x": torch.tensor(100)}})
    assert kept.find(36) is not None and kept.find(37) is None


def test_a_mate_cancels_each_simulation_once() -> None:
    said: list[tuple[object, ...]] = []
    library = MateLibrary(10, Facts, lambda *words: said.append(words))
    taken = np.empty(4, np.int64)
    count, wanted = ctypes.c_int64(), np.array([3, 3, 12, -1], np.int64)
    library.mpidata_trainer_cancel(wanted.ctypes.data, 4, taken.ctypes.data, ctypes.byref(count))
    assert taken[: count.value].tolist() == [3] and said[0][1] == [3]
    library.mpidata_trainer_cancel(wanted.ctypes.data, 4, taken.ctypes.data, ctypes.byref(count))
    assert count.value == 0


def test_late_mates_are_reported_once() -> None:
    said: list[str] = []
    now = [0.0]
    late = LateMates(said.append, lambda: now[0])
    late.look()
    late.begin(7)
    now[0] = deadlines.SILENT_S
    late.look()
    assert not said
    now[0] += 1
    late.look()
    late.look()
    assert len(said) == 1 and "to take batch 7. Let all ranks" in said[0]
    late.begin(8)
    late.end()
    now[0] += 1000
    late.look()
    assert len(said) == 1
