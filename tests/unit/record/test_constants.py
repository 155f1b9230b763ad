"""The record of constants: stored once for each try, and read with its samples."""

import json
import os

import h5py
import numpy as np
import pytest
from recording import (
    FIELDS_WITH_CONSTANTS,
    SAMPLES,
    check,
    is_given,
    lengths_of,
    make_plan_with_constants,
    make_plan_with_lengths,
    record,
    values_of,
)
from torch.utils.data import DataLoader

from mpidata import PackedCollate, RecordedDataset
from mpidata.errors import MpidataError, StreamError
from mpidata.record import columns as record_columns
from mpidata.tensors import array_of

pytestmark = pytest.mark.parametrize("plan", [make_plan_with_constants], indirect=True)
TRAINING = [sample for sample in SAMPLES if sample[0] < 3]
ONCE = [field for field in FIELDS_WITH_CONSTANTS if field.per_simulation]


@pytest.mark.parametrize("chunk_bytes", [50, 5000, 4 << 20])
def test_samples_are_read_back_with_the_constants_of_their_try(plan, monkeypatch, chunk_bytes):
    """Samples of two tries of each simulation, in any order, have the constants of their own try."""
    for name in ("TOGETHER_BYTES", "EVENLY_BYTES"):
        monkeypatch.setattr(record_columns, name, chunk_bytes)
    record(plan, [SAMPLES[i] for i in np.random.default_rng(0).permutation(len(SAMPLES))])
    for constants in ("apart", "batch"):
        dataset = RecordedDataset(plan.record_path, constants=constants)
        assert tuple(dataset.fields.values()) == FIELDS_WITH_CONSTANTS
        check(dataset, TRAINING)
    check(RecordedDataset(plan.record_path, validation=True), [s for s in SAMPLES if s[0] == 3])


def test_file_follows_the_documented_layout(plan):
    record(plan, SAMPLES)
    (path,) = plan.record_path.iterdir()
    with h5py.File(path) as file:
        assert file.attrs["version"] == 3 and json.loads(file.attrs["header"])["fields"][0]["per_simulation"] is True
        assert [len(file["constants"][name]) for name in ("of", "simulation", "try")] == [len(SAMPLES), 8, 8]
        assert set(file["fields"]) == {field.name for field in FIELDS_WITH_CONSTANTS} - {field.name for field in ONCE}
        nodes = np.concatenate([[0], np.cumsum(file["constants/lengths/nodes"])])
        for i, (simulation, step) in enumerate(zip(file["simulation"], file["step"], strict=True)):
            of, wanted = file["constants/of"][i], lengths_of(FIELDS_WITH_CONSTANTS, simulation, step)
            assert (file["constants/simulation"][of], file["constants/try"][of]) == (simulation, step >= 12)
            xy = values_of(ONCE[0], wanted, simulation, step)
            assert np.array_equal(file["constants/fields/xy"][nodes[of] : nodes[of + 1]], xy)
        contents = []
        file.visititems(lambda _, item: contents.append(item.nbytes) if isinstance(item, h5py.Dataset) else None)
    assert os.path.getsize(path) <= 1.1 * sum(contents) + 1e6


def test_constants_of_a_simulation_are_returned(plan):
    record(plan, SAMPLES)
    dataset = RecordedDataset(plan.record_path)
    for simulation in range(3):
        held, lengths = dataset.constants(simulation), lengths_of(FIELDS_WITH_CONSTANTS, simulation, 12)
        assert set(held) == {field.name for field in ONCE} | {"mask_given", "area_given"}
        for field in ONCE:
            assert np.array_equal(array_of(held[field.name]), values_of(field, lengths, simulation, 12))
            assert not field.optional or bool(held[f"{field.name}_given"]) == is_given(field, simulation, 12)
    with pytest.raises(StreamError, match="holds no sample of simulation 3, whose constants"):
        dataset.constants(3)  # a validation simulation
    with pytest.raises(StreamError, match="constants='a part' is neither"):
        RecordedDataset(plan.record_path, constants="a part")


def test_constants_raises_an_error_if_the_record_has_none(plan, tmp_path):
    record(make_plan_with_lengths(run=tmp_path / "run", record_path=tmp_path / "other"), SAMPLES)
    with pytest.raises(StreamError, match="no field with 'per: simulation'"):
        RecordedDataset(tmp_path / "other").constants(0)


@pytest.mark.parametrize("constants", ["apart", "batch"])
def test_windows(plan, constants):
    """Windows of one try have its constants; batches of windows have them only if they are like the other fields."""
    record(plan, [(simulation, step) for simulation in range(3) for step in range(12)])
    dataset = RecordedDataset(plan.record_path, window=2, constants=constants)
    sample, lengths = dataset[0], lengths_of(FIELDS_WITH_CONSTANTS, 0, 0)
    mesh, times = values_of(ONCE[0], lengths, 0, 0), 1 if constants == "apart" else 2
    assert np.array_equal(sample["xy"].numpy(), np.concatenate([mesh] * times))
    assert sample["scale"].shape == ((2,) if constants == "batch" else ())
    assert sample["area_given"].shape == ((2,) if constants == "batch" else ())
    (batch,) = DataLoader(dataset, batch_size=33, collate_fn=PackedCollate(dataset.fields))
    assert ("xy" in batch) == ("area" in batch) == ("area_given" in batch) == (constants == "batch")
    if constants == "batch":
        assert len(batch["xy"]) == batch["nodes_offsets"][-1] and batch["area"].shape == (33, 2, 3)


def test_resumed_run_records_only_new_samples(plan):
    for samples in (SAMPLES[:50], SAMPLES[30:]):
        record(plan, samples)
    check(RecordedDataset(plan.record_path), TRAINING)


DAMAGES = {
    "constants/of": (3, 100, "constants/of refers to missing constants"),
    "constants/simulation": (0, 2, "or to those of another simulation"),
    "constants/lengths/nodes": (0, 1 << 40, "constants/lengths/nodes makes no sense"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_constants_are_named_in_the_error(plan, name):
    record(plan, SAMPLES)
    (path,) = plan.record_path.iterdir()
    row, value, said = DAMAGES[name]
    with h5py.File(path, "r+") as file:
        file[name][row] = value
    with pytest.raises(MpidataError, match=said):
        RecordedDataset(plan.record_path)
