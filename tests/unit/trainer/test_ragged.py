"""Packed, padded and nested batches of samples with lengths match what NumPy and torch make."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import random_fields
import torch
from alone_job import SIMULATIONS, STEPS, Samples, alone, begin, plan_of
from torch.utils.data import DataLoader

from mpidata.errors import StreamError
from mpidata.native.constants import DTYPES
from mpidata.run.plan import Field, Plan
from mpidata.tensors import array_of
from mpidata.trainer.batches.fixed_shapes import Batch
from mpidata.trainer.batches.nested import NestedMemory
from mpidata.trainer.batches.packed import PackedMemory
from mpidata.trainer.batches.padded import PaddedMemory
from mpidata.trainer.dataset import MPIStreamDataset
from mpidata.trainer.standalone.sources import Sample

MESH = (
    Field("xy", "float32", ("nodes", 2)),
    Field("u", "float64", ("nodes",)),
    Field("edge_index", "int64", (2, "edges"), "nodes"),
    Field("g", "float32", (3,)),
)
LEAST, MOST = {"nodes": 1, "edges": 0}, {"nodes": 9, "edges": 20}
PAD = -0.75

Batched = dict[str, torch.Tensor]


def random_job(seed: int) -> Samples:
    """Return samples of fields like those in the jobs of tests/mpi."""
    keys, spec = random_fields.draw(seed)
    fields = tuple(
        Field(name, of["dtype"], tuple(of["shape"]), of.get("index", ""), of.get("base", 0), of.get("optional", False))
        for name, of in spec["fields"].items()
    )
    plan = plan_of(fields, samples_window=keys["samples"]["window"], capacity=60 * keys["samples"]["window"])
    least, most = ({name: of[end] for name, of in spec["lengths"].items()} for end in (0, 1))
    return Samples(plan, least, {name: min(40, extent) for name, extent in most.items()})


def steps_of(samples: Samples, batch: Batched) -> list[Sample]:
    """Return the given steps of a batch; check what every batch has."""
    window, count = samples.plan.samples_window, len(batch["simulation"])
    simulations = batch["simulation"].repeat_interleave(window).tolist()
    steps = [samples.of(*of) for of in zip(simulations, batch["step"].reshape(-1).tolist(), strict=True)]
    lead = (count,) if window == 1 else (count, window)
    assert batch["time"].tolist() == np.reshape([step.time for step in steps], lead).tolist()
    assert batch["parameters"].tolist() == [step.parameters.tolist() for step in steps[::window]]
    for number, name in enumerate(samples.plan.numbers):
        assert batch[name].dtype == (torch.bool if name.endswith("_given") else torch.int64)
        assert batch[name].tolist() == np.reshape([step.numbers[number] for step in steps], lead).tolist()
    return steps


def equal(came: torch.Tensor, wanted: np.ndarray[Any, Any]) -> None:
    array = array_of(came)
    assert array.dtype == wanted.dtype and array.shape == wanted.shape
    assert np.array_equal(array, wanted)


def check_packed(plan: Plan, batch: Batched, steps: Sequence[Sample]) -> None:
    before = {}
    for number, length in enumerate(plan.lengths):
        offsets = np.cumsum([0, *(step.numbers[number] for step in steps)])
        equal(batch[f"{length.name}_offsets"], offsets)
        before[length.name] = offsets[:-1]
    for number, field in enumerate(plan.fields):
        arrays = [step.fields[number] for step in steps]
        if not field.length:
            assert np.array_equal(
                array_of(batch[field.name]).reshape(-1), np.concatenate([a.reshape(-1) for a in arrays])
            )
            continue
        if field.index:
            arrays = [a + by.astype(a.dtype) for a, by in zip(arrays, before[field.index], strict=True)]
        equal(batch[field.name], np.concatenate(arrays, field.shape.index(field.length)))


def check_padded(plan: Plan, batch: Batched, steps: Sequence[Sample]) -> None:
    lead = tuple(batch["step"].shape)
    longest = {length.name: max(int(step.numbers[n]) for step in steps) for n, length in enumerate(plan.lengths)}
    for number, field in enumerate(plan.fields):
        dtype = getattr(torch, field.dtype)
        pad = PAD if dtype.is_floating_point or dtype.is_complex else -1 if field.index else 0
        wanted = array_of(torch.full((len(steps), *field.extents(longest)), pad, dtype=dtype))
        for place, step in enumerate(steps):
            wanted[(place, *map(slice, step.fields[number].shape))] = step.fields[number]
        equal(batch[field.name], wanted.reshape(lead + wanted.shape[1:]))
    assert not [name for name in batch if name.endswith("_offsets")]


def check_nested(plan: Plan, batch: Batched, steps: Sequence[Sample]) -> None:
    offsets = {}
    for number, field in enumerate(plan.fields):
        came, arrays = batch[field.name], [step.fields[number] for step in steps]
        if not field.length:
            equal(came, np.stack(arrays))
            continue
        assert came.is_nested and came.layout == torch.jagged
        assert offsets.setdefault(field.length, came.offsets()) is came.offsets()
        for one, wanted in zip(came.unbind(), arrays, strict=True):
            equal(one, wanted)
    assert not [name for name in batch if name.endswith("_offsets")]


CHECKS = {"packed": check_packed, "padded": check_padded, "nested": check_nested}


@pytest.mark.parametrize("seed", range(30))
@alone
def test_batches_of_random_fields_equal_those_made_by_numpy(seed: int) -> None:
    samples = random_job(seed)
    window = samples.plan.samples_window
    kinds = [kind for kind in CHECKS if kind != "nested" or window == 1]
    begin(samples)
    streams = {kind: iter(MPIStreamDataset(3, ragged=kind, pad=PAD if kind == "padded" else None)) for kind in kinds}
    drawn: list[tuple[int, int]] = []
    for number in range(SIMULATIONS * (STEPS - window + 1) // 3):  # they share one stream
        kind = kinds[number % len(kinds)]
        batch = next(streams[kind])
        steps = steps_of(samples, batch)
        CHECKS[kind](samples.plan, batch, steps)
        drawn += [(step.simulation, step.step) for step in steps[::window]]
    assert len(set(drawn)) == len(drawn)


@alone
def test_batches_support_all_dtypes() -> None:
    fields = tuple(Field(f"f_{dtype}", dtype, (2, "nodes"), optional=True) for dtype in DTYPES)
    samples = Samples(plan_of((Field("u", "float32", ("nodes",)), *fields)), {"nodes": 0}, {"nodes": 9})
    begin(samples)
    for kind in CHECKS:
        batch = next(iter(MPIStreamDataset(7, ragged=kind)))
        assert {f"f_{dtype}": batch[f"f_{dtype}"].dtype for dtype in DTYPES} == {
            f"f_{dtype}": getattr(torch, dtype) for dtype in DTYPES
        }
        steps = steps_of(samples, batch)
        for number, field in enumerate(samples.plan.fields):
            for place, step in enumerate(steps):
                rows = slice(int(step.numbers[0]))
                if kind == "packed":
                    rows = slice(*batch["nodes_offsets"][place : place + 2].tolist())
                of_sample = batch[field.name] if kind == "packed" else batch[field.name][place]
                came = array_of(of_sample[..., rows].contiguous())
                assert came.dtype == step.fields[number].dtype and np.array_equal(came, step.fields[number])
            if kind == "padded":
                behind = torch.arange(batch[field.name].shape[-1]) >= batch["nodes"].unsqueeze(1)
                assert behind.any() and not array_of(batch[field.name].movedim(-1, 1))[behind.numpy()].any()


@alone
def test_nested_fields_of_one_length_can_be_combined() -> None:
    begin(Samples(plan_of(MESH), LEAST, MOST))
    batch = next(iter(MPIStreamDataset(4, ragged="nested")))
    scaled = batch["xy"] * batch["u"].unsqueeze(-1).to(torch.float32)
    for one, xy, u in zip(scaled.unbind(), batch["xy"].unbind(), batch["u"].unbind(), strict=True):
        assert torch.equal(one, xy * u.unsqueeze(-1).to(torch.float32))
    assert batch["edge_index"].shape[:2] == (4, 2)


@alone
def test_padding_is_zero_if_not_given() -> None:
    begin(Samples(plan_of(MESH), LEAST, MOST))
    batch = next(iter(MPIStreamDataset(8, ragged="padded")))
    own = torch.arange(batch["u"].shape[1]) < batch["nodes"].unsqueeze(1)
    assert not own.all() and (batch["u"][~own] == 0).all() and (batch["xy"][~own] == 0).all()


@pytest.mark.parametrize("kind", [PackedMemory, PaddedMemory, NestedMemory])
def test_no_memory_is_allocated_after_batches_of_the_largest_lengths(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mpidata.trainer.batches import pool

    made, new_block = [], pool._new_block
    monkeypatch.setattr(pool, "_new_block", lambda size: made.append(size) or new_block(size))
    memory = kind(plan_of(MESH), 4, **({"pad": 0.0} if kind is PaddedMemory else {}))
    chance = np.random.default_rng(1)
    batch, other = (memory.take(np.full((2, 4), 3000)) for _ in range(2))  # one is in use while the next is filled
    del batch, other
    warm = len(made)
    kept: Batch | None = None
    for _ in range(300):
        kept = memory.take(chance.integers(0, 3001, (2, 4)))
    assert kept is not None and len(made) == warm == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"ragged": "dense"}, "ragged='dense' is unknown. Use one of 'packed', 'padded', 'nested'."),
        ({"batch_size": None, "ragged": "padded"}, "ragged='padded' needs batch_size"),
        ({"batch_size": None, "ragged": "nested"}, "ragged='nested' needs batch_size"),
        ({"pad": 1.0}, "pad=1.0 has no effect with ragged='packed'"),
        ({"ragged": "nested", "pad": 0.0}, "pad=0.0 has no effect with ragged='nested'"),
        ({"ragged": "padded", "pad": "0"}, "pad='0' is not a number"),
        ({"ragged": "padded", "pad": True}, "pad=True is not a number"),
        ({"ragged": "padded", "pad": 10**400}, "pad is too large for a float"),
        ({"ragged": "padded", "pad": 1e300}, "pad=1e+300 is too large for field 'xy', which is float32"),
    ],
)
@alone
def test_invalid_ragged_and_pad_arguments_are_refused(arguments: dict[str, Any], sentence: str) -> None:
    begin(Samples(plan_of(MESH), LEAST, MOST))
    with pytest.raises(StreamError) as caught:
        MPIStreamDataset(**({"batch_size": 4} | arguments))
    assert sentence in str(caught.value)


@alone
def test_nested_windows_are_refused() -> None:
    begin(Samples(plan_of(MESH, samples_window=2), LEAST, MOST))
    with pytest.raises(StreamError, match=r"ragged='nested' does not support samples.window, 2 in the job file"):
        MPIStreamDataset(4, ragged="nested")


@alone
def test_samples_that_cannot_be_stacked_are_refused_with_the_reason() -> None:
    begin(Samples(plan_of(MESH), LEAST, MOST))
    stream = MPIStreamDataset()
    with pytest.raises(
        StreamError, match=r"each of them has its own 'nodes'. Give the DataLoader collate_fn=mpidata.Packed"
    ):
        next(iter(DataLoader(stream, batch_size=4)))
    listed = next(iter(DataLoader(stream, batch_size=4, collate_fn=list)))
    assert len(listed) == 4 and all(len(sample["u"]) == sample["nodes"] for sample in listed)


@alone
def test_fields_of_fixed_shape_are_stacked_for_any_ragged_argument() -> None:
    begin(Samples(plan_of((Field("g", "float32", (3,)),)), {}, {}))
    assert next(iter(MPIStreamDataset(4, ragged="padded", pad=1.0)))["g"].shape == (4, 3)
    assert next(iter(MPIStreamDataset(4, ragged="nested")))["g"].shape == (4, 3)
