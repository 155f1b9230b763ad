"""Single samples with lengths, joined into batches."""

import numpy as np
import pytest
import torch
from fake_library import FIELDS
from recording import FIELDS_WITH_LENGTHS, is_given, lengths_of, values_of
from torch.utils.data import DataLoader

from mpidata import PackedCollate
from mpidata.errors import StreamError
from mpidata.packing import join_fields, number_tensors
from mpidata.tensors import tensor_of

FIELDS_BY_NAME = {field.name: field for field in FIELDS_WITH_LENGTHS}


def make_sample(simulation: int, step: int) -> dict[str, torch.Tensor]:
    lengths = lengths_of(FIELDS_WITH_LENGTHS, simulation, step)
    sample = {
        field.name: tensor_of(values_of(field, lengths, simulation, step), field.dtype) for field in FIELDS_WITH_LENGTHS
    }
    sample |= {name: torch.tensor(length) for name, length in lengths.items()}
    for field in FIELDS_WITH_LENGTHS:
        if field.optional:
            sample[f"{field.name}_given"] = torch.tensor(is_given(field, simulation, step))
    alike = {"parameters": torch.tensor([0.5, simulation]), "time": torch.tensor(0.5 * step, dtype=torch.float64)}
    return sample | alike | {"step": torch.tensor(step), "simulation": torch.tensor(simulation)}


def make_window(simulation: int, first: int) -> dict[str, torch.Tensor]:
    """Return two steps, as the stream joins them."""
    steps = [make_sample(simulation, first + i) for i in range(2)]
    names = ("nodes", "edges", "pressure_given", "drag_given")
    numbers = [np.array([int(step[name]) for step in steps]) for name in names]
    joined = join_fields(FIELDS_WITH_LENGTHS, steps, dict(zip(names, numbers, strict=True)))
    joined |= number_tensors(names, numbers, 2)
    once = {name: steps[0][name] for name in ("parameters", "simulation")}
    return joined | once | {name: torch.stack([step[name] for step in steps]) for name in ("time", "step")}


@pytest.mark.parametrize("window", [1, 2])
def test_samples_are_packed_at_their_offsets(window: int) -> None:
    """Each sample and step lies where the offsets say, with indices shifted by what comes before."""
    keys = [(simulation, 2 * step) for simulation in range(2) for step in range(4)]
    samples = [(make_sample if window == 1 else make_window)(*key) for key in keys]
    (batch,) = DataLoader(samples, batch_size=len(keys), collate_fn=PackedCollate(FIELDS_BY_NAME))  # type: ignore[arg-type,var-annotated]
    steps = [make_sample(simulation, step + i) for simulation, step in keys for i in range(window)]
    for name in ("nodes", "edges"):
        assert batch[name].shape == ((8,) if window == 1 else (8, 2)) and batch[name].dtype == torch.int64
        assert batch[name].reshape(-1).tolist() == [int(step[name]) for step in steps]
        assert batch[f"{name}_offsets"].tolist() == [0, *np.cumsum([int(step[name]) for step in steps])]
    for number, step in enumerate(steps):
        for field in FIELDS_WITH_LENGTHS:
            if not field.length:
                values = batch[field.name].reshape(len(steps), *field.shape)[number]
            else:
                first, end = batch[f"{field.length}_offsets"][number : number + 2].tolist()
                values = batch[field.name].narrow(field.shape.index(field.length), first, end - first)
            moved = int(batch[f"{field.index}_offsets"][number]) if field.index else 0
            wanted = step[field.name] + moved if field.index else step[field.name]
            assert values.dtype == wanted.dtype and torch.equal(values, wanted), field
            if field.optional:
                assert batch[f"{field.name}_given"].reshape(-1)[number] == step[f"{field.name}_given"]
    for name, field in FIELDS_BY_NAME.items():
        assert not field.length or batch[name].numel() == sum(step[name].numel() for step in steps)
    assert batch["simulation"].tolist() == [key[0] for key in keys] and batch["parameters"].shape == (8, 2)
    assert batch["step"].reshape(8, -1)[:, 0].tolist() == [key[1] for key in keys]


def test_added_or_removed_keys_are_packed_unless_a_length_is_missing() -> None:
    samples = [make_sample(0, step) | {"target": 0.5 * step, "name": "x"} for step in range(3)]
    for sample in samples:
        del sample["flags"]
    batch = PackedCollate(FIELDS_BY_NAME)(samples)
    assert batch["target"].tolist() == [0.0, 0.5, 1.0] and batch["name"] == ["x"] * 3 and "flags" not in batch
    del samples[1]["edges"]
    with pytest.raises(StreamError, match="PackedCollate: a sample has no 'edges'.*Keep it"):
        PackedCollate(FIELDS_BY_NAME)(samples)


def test_fields_without_lengths_are_stacked() -> None:
    samples = [{"temperature": torch.full((2, 3), float(i)), "scalar": torch.tensor(i)} for i in range(4)]
    batch = PackedCollate({field.name: field for field in FIELDS})(samples)
    assert batch["temperature"][:, 1, 2].tolist() == [0.0, 1.0, 2.0, 3.0] and batch["scalar"].tolist() == [0, 1, 2, 3]
