"""The tensors in a batch of any shape."""

import collections
import types
from collections import OrderedDict, UserDict, defaultdict
from dataclasses import dataclass

import pytest
import torch

from mpidata.device.tensors import map_tensors
from mpidata.errors import StreamError

Point = collections.namedtuple("Point", "x y")
ONE = torch.ones(2)


@dataclass
class Record:
    x: torch.Tensor


def negative(batch):
    return map_tensors(batch, torch.neg)


@pytest.mark.parametrize(
    "make",
    [
        lambda one: one,
        lambda one: {"a": one, "b": {"c": one}},
        lambda one: [one, (one, "text", None, 3)],
        lambda one: Point(one, [one]),
        lambda one: OrderedDict(b=one, a=one),
        lambda one: UserDict(a=one),
        lambda one: types.MappingProxyType({"a": one}),
        lambda one: defaultdict(list, a=[one]),
    ],
)
def test_each_tensor_is_moved_and_containers_keep_their_type(make):
    batch, expected = make(ONE), make(-ONE)
    moved = negative(batch)
    assert type(moved) is type(expected) and str(moved) == str(expected)
    assert str(batch) == str(make(ONE))


def test_objects_without_tensors_are_returned_unchanged():
    things = [b"bytes", 3.5, object(), Record]
    assert all(a is b for a, b in zip(negative(things), things, strict=True))


def test_nested_tensors_are_moved_with_their_offsets():
    offsets = torch.tensor([0, 1, 3])
    moved = negative(torch.nested.nested_tensor_from_jagged(torch.arange(3.0), offsets))
    assert moved.is_nested and moved.values().tolist() == [0, -1, -2] and moved.offsets().tolist() == [0, -1, -3]


@pytest.mark.parametrize(
    ("batch", "what"),
    [
        (Record(ONE), "a Record"),
        (torch.nn.utils.rnn.pack_sequence([ONE, ONE]), "a PackedSequence"),
        (ONE.to_sparse(), "a tensor of layout sparse_coo"),
        (types.SimpleNamespace(x=ONE), "a SimpleNamespace"),
        (types.SimpleNamespace(to=print), "a SimpleNamespace"),
    ],
)
def test_batches_that_cannot_be_moved_are_refused(batch, what):
    with pytest.raises(StreamError, match=f"The batch has {what}.* leave device out and move the batch in the loop."):
        negative([batch])
