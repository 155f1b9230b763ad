import ctypes
import gc
import os
import threading

import pytest
import torch

from mpidata.native.constants import DTYPES
from mpidata.run.plan import Field
from mpidata.trainer.batches.fixed_shapes import BatchMemory

FIELDS = (Field("u", "float32", (4, 5)), Field("n", "uint8", (3,)), Field("s", "int32", ()))


def test_tensors_have_the_declared_shapes_and_dtypes():
    tensors = BatchMemory(FIELDS, 2, 7).take().tensors
    assert {name: (tuple(t.shape), t.dtype) for name, t in tensors.items()} == {
        "u": ((7, 4, 5), torch.float32),
        "n": ((7, 3), torch.uint8),
        "s": ((7,), torch.int32),
        "parameters": ((7, 2), torch.float64),
        "time": ((7,), torch.float64),
        "step": ((7,), torch.int64),
        "simulation": ((7,), torch.int64),
    }


@pytest.mark.parametrize("count", [None, 3])
def test_tensors_have_the_torch_dtype_of_their_field(count):
    fields = [Field(f"of_{name}", name, (5,)) for name in DTYPES]
    batch = BatchMemory(fields, 1, count).take()
    for field, address in zip(fields, batch.addresses, strict=False):
        tensor = batch.tensors[field.name]
        assert tensor.dtype == getattr(torch, field.dtype) and tensor.data_ptr() == address
        assert tensor.nbytes == field.nbytes * (count or 1)


def test_single_samples_have_no_leading_dimension():
    tensors = BatchMemory(FIELDS, 2).take().tensors
    assert [tuple(t.shape) for t in tensors.values()] == [(4, 5), (3,), (), (2,), (), (), ()]


def test_tensors_do_not_overlap_and_are_aligned():
    memory = BatchMemory(FIELDS, 2, 7)
    first, second = memory.take(), memory.take()
    spans = []
    for batch in (first, second):
        for name, tensor, address in zip(batch.tensors, batch.tensors.values(), batch.addresses, strict=True):
            assert tensor.data_ptr() == address and address % (64 if name in "uns" else 8) == 0
            spans.append((address, address + tensor.numel() * tensor.element_size()))
    spans.sort()
    assert all(end <= start for (_, end), (start, _) in zip(spans, spans[1:], strict=False))


def test_memory_is_reused_last_in_first_out():
    memory = BatchMemory(FIELDS, 2, 7)
    first, second = memory.take(), memory.take()
    addresses = first.addresses[0], second.addresses[0]
    del first
    del second
    assert memory.free == 2
    third = memory.take()
    fourth = memory.take()
    assert (third.addresses[0], fourth.addresses[0]) == (addresses[1], addresses[0])


@pytest.mark.parametrize(
    "hold",
    [
        lambda b: b["u"],
        lambda b: b["u"][2],
        lambda b: b["u"][2:4, 1].t(),
        lambda b: b["u"].numpy(),
        lambda b: b["u"][3].numpy()[1:, ::2],
        lambda b: b["u"].view(torch.uint8),
        lambda b: b["u"].detach().requires_grad_().flatten(),
        lambda b: b["s"].untyped_storage(),
        lambda b: memoryview(b["n"].numpy()),
        lambda b: torch.utils.dlpack.from_dlpack(b["u"]),
        lambda b: b["time"][0],
    ],
)
def test_memory_in_use_is_not_reused(hold):
    memory = BatchMemory(FIELDS, 2, 7)
    batch = memory.take()
    address = batch.addresses[0]
    held = hold(batch.tensors)
    del batch
    gc.collect()
    assert memory.free == 0
    assert memory.take().addresses[0] != address
    del held
    gc.collect()
    assert memory.free == 2


def test_memory_used_by_an_autograd_graph_is_not_reused():
    memory = BatchMemory(FIELDS, 2, 7)
    batch = memory.take()
    batch.tensors["u"][...] = 3.0
    weight = torch.ones(5, requires_grad=True)
    loss = (batch.tensors["u"] * weight).sum()
    del batch
    assert memory.free == 0
    loss.backward()  # needs the values of u
    assert weight.grad.tolist() == [3.0 * 28] * 5
    del loss
    assert memory.free == 1


def test_at_most_64_mib_of_free_memory_is_kept():
    memory = BatchMemory((Field("u", "float64", (1 << 20,)),), 0, 1)  # 8 MiB each: eight are more than 64 MiB
    batches = [memory.take() for _ in range(12)]
    del batches
    assert memory.free == 7


def test_memory_released_by_another_thread_returns_to_the_pool():
    memory = BatchMemory(FIELDS, 2, 7)
    batches = [memory.take()]
    thread = threading.Thread(target=batches.clear)
    thread.start()
    thread.join()
    assert memory.free == 1


def test_large_blocks_are_aligned_to_huge_pages():
    batch = BatchMemory((Field("u", "float32", (1024, 1024)),), 2, 7).take()
    batch.tensors["u"][:] = 3
    batch.tensors["simulation"][:] = 4
    assert batch.addresses[0] % (2 << 20) == 0 and batch.tensors["u"].sum() == 3 * 7 * 1024 * 1024


@pytest.mark.parametrize("elements", [100, 1 << 20])
def test_forked_process_does_not_write_into_batches_of_its_parent(elements):
    batch = BatchMemory((Field("u", "uint8", (elements,)),), 0, 2).take()
    batch.tensors["u"].fill_(3)
    child = os.fork()
    if child == 0:
        ctypes.memset(batch.addresses[0], 7, elements)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert bool((batch.tensors["u"] == 3).all())


def test_external_block_is_released_when_nothing_refers_to_it():
    memory, given_back = BatchMemory(FIELDS, 2, 7), []
    block = torch.zeros(memory.size, dtype=torch.uint8)
    tensors = memory.at(block.data_ptr(), lambda: given_back.append(1))
    row = tensors["n"][2]
    row[1] = 5
    del tensors
    gc.collect()
    assert not given_back and block.sum() == 5
    del row
    assert given_back == [1]
