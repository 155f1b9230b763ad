"""`mpidata try --record`: a script draws what a job has recorded."""

import json
import textwrap
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from fake_library import make_plan
from recording import SAMPLES, content, make_plan_with_constants, make_plan_with_lengths, record
from tried import SCRIPT, attempt, drawn

from mpidata import PackedCollate, RecordedDataset
from mpidata.run.plan import Plan


def test_recorded_samples_are_drawn_with_their_contents(folder: Path) -> None:
    plan = make_plan(run=folder / "run", record_path=folder / "record")
    record(plan, SAMPLES)
    job = """
    trainers: {program: [python, train.py]}
    solvers: {groups: 2, program: [./not_there]}
    parameters: {count: 3, space: SPACE}
    validation: {count: 1}
    buffer: {policy: fifo, capacity: 20}
    """
    fields = {field.name: {"dtype": field.dtype, "shape": list(field.shape)} for field in plan.fields}
    job += f"fields: {json.dumps(fields)}\n"
    space = json.dumps(dict.fromkeys(plan.parameters, [0, 1]))
    (folder / "job.yaml").write_text(textwrap.dedent(job).replace("SPACE", space))
    (folder / "train.py").write_text(SCRIPT.replace('["u"].sum()', '["time"]'))
    status, said = attempt(folder, "train.py", "5", "--record", "record", "--job", "job.yaml")
    assert status == 3, said
    whole = drawn(folder)
    assert len(whole["batches"]) == whole["expected"] == 12 and len(whole["validation"]) == 20  # type: ignore[arg-type]
    keys = []
    for batch in whole["batches"]:  # type: ignore[attr-defined]
        for i, (simulation, step) in enumerate(zip(batch["simulation"], batch["step"], strict=True)):
            keys.append((simulation, step))
            assert batch["parameters"][i] == [simulation, -step]
            for field in plan.fields:
                values = content(field.name, simulation, step, field.shape, field.dtype)
                assert np.array_equal(np.array(batch[field.name][i], field.dtype), values)
    assert sorted(keys) == sorted((simulation, step) for simulation, step in SAMPLES if simulation < 3)
    assert keys[:4] == [(0, 0), (1, 0), (0, 1), (1, 1)]  # of two groups
    other = attempt(
        folder, "train.py", "5", "--record", "record", "--job", "job.yaml", "--set", "fields={x: {shape: [2]}}"
    )
    assert other[0] == 1 and "is the record of a job with other fields" in other[1]
    assert attempt(folder, "train.py", "5", "--record", "no_record", "--job", "job.yaml") == (
        1,
        f"mpidata: {folder}/no_record is not a folder. Give the folder that `record.path` of the job file names "
        "(train.py line 6)\n",
    )


@pytest.mark.full
@pytest.mark.parametrize(
    ("make", "window"),
    [(make, window) for make in (make_plan_with_constants, make_plan_with_lengths) for window in (1, 3)],
)
def test_recorded_samples_with_lengths_are_packed(folder: Path, make: Callable[..., Plan], window: int) -> None:
    """Also with constants, two tries of each simulation, and windows, which were not recorded as such."""
    plan = make(run=folder / "run", record_path=folder / "record")
    record(plan, SAMPLES)
    fields = {f.name: {"dtype": f.dtype, "shape": list(f.shape)} for f in plan.fields}
    for field in plan.fields:
        fields[field.name] |= {"index": field.index, "base": field.base} if field.index else {}
        fields[field.name] |= {"optional": True} if field.optional else {}
        fields[field.name] |= {"per": "simulation"} if field.per_simulation else {}
    (folder / "job.yaml").write_text(
        "trainers: {program: [python, train.py]}\nsolvers: {groups: 2, program: [./not_there]}\n"
        f"parameters: {{count: 3, space: {json.dumps(dict.fromkeys(plan.parameters, [0, 1]))}}}\n"
        f"validation: {{count: 1}}\nbuffer: {{policy: fifo, capacity: 20}}\nfields: {json.dumps(fields)}\n"
        f"samples: {{window: {window}}}\n"
    )
    (folder / "train.py").write_text(
        "import mpidata, torch\nstream = mpidata.MPIStreamDataset(batch_size=5, constants='batch')\n"
        "torch.save([list(stream.validation()), list(stream)], 'drawn.pt')\n"
    )
    arguments = ["train.py", "--record", "record", "--job", "job.yaml"]
    del fields["edge_index"]["index"], fields["edge_index"]["base"]
    refused = attempt(folder, *arguments, "--set", f"fields={json.dumps(fields)}")
    assert refused[0] == 1 and "is the record of a job with other fields" in refused[1]
    status, said = attempt(folder, *arguments)
    assert status == 0, said
    validation, batches = torch.load(folder / "drawn.pt")
    recorded = RecordedDataset(plan.record_path, window=window, constants="batch")
    samples = {(int(s["simulation"]), int(s["step"].reshape(-1)[0])): s for s in recorded}
    collate, seen = PackedCollate({field.name: field for field in plan.fields}), []
    for batch in batches:
        first = batch["step"].reshape(-1, window)[:, 0]
        keys = list(zip(batch["simulation"].tolist(), first.tolist(), strict=True))
        check_same(batch, collate([samples[key] for key in keys]))
        seen += keys
    whole = sorted((simulation, step) for simulation, step in SAMPLES if simulation < 3 and step <= 20 - window)
    assert sorted(samples) == whole
    assert len(set(seen)) == len(seen) == len(whole) // 5 * 5 and set(seen) <= set(whole)
    held = list(RecordedDataset(plan.record_path, validation=True, window=window, constants="batch"))
    assert len(validation) == len(held) == 21 - window
    for sample, wanted in zip(validation, held, strict=True):
        check_same(sample, wanted)


def test_record_without_complete_windows_is_refused(folder: Path) -> None:
    """The job recorded every third step."""
    plan = make_plan(run=folder / "run", record_path=folder / "record")
    record(plan, [sample for sample in SAMPLES if sample[1] % 3 == 0])
    fields = {f.name: {"dtype": f.dtype, "shape": list(f.shape)} for f in plan.fields}
    changes = {"fields": fields, "parameters": {"count": 3, "space": dict.fromkeys(plan.parameters, [0, 1])}}
    changes |= {"validation": {"count": 1}, "trainers": {"program": ["python"]}}
    sets = [f"--set={name}={json.dumps(value)}" for name, value in changes.items()]
    (folder / "train.py").write_text("import mpidata\nprint(len(list(mpidata.MPIStreamDataset(batch_size=2))))\n")
    arguments = ["train.py", "--record", "record", "--job", "job.yaml", *sets]
    status, said = attempt(folder, *arguments, "--set=samples={window: 2}")
    assert status == 1 and "does not contain 2 steps of one simulation that are 1 apart" in said, said
    status, said = attempt(folder, *arguments, "--set=samples={window: 2, stride: 3}")
    assert status == 0 and said.splitlines()[0] == "9", said


def test_damaged_validation_sample_ends_the_wait_for_validation_samples(folder: Path) -> None:
    plan = make_plan(run=folder / "run", record_path=folder / "record")
    record(plan, SAMPLES)
    with h5py.File(folder / "record" / "trainer-0000.h5", "r+") as file:
        file["fields/temperature"].resize(79, axis=0)
    fields = {f.name: {"dtype": f.dtype, "shape": list(f.shape)} for f in plan.fields}
    changes = {"fields": fields, "parameters": {"count": 3, "space": dict.fromkeys(plan.parameters, [0, 1])}}
    changes |= {"validation": {"count": 1}, "samples": {}, "trainers": {"program": ["python"]}}
    sets = [f"--set={name}={json.dumps(value)}" for name, value in changes.items()]
    status, said = attempt(folder, "train.py", "5", "--record", "record", "--job", "job.yaml", *sets)
    assert status == 1 and "mpidata try: no further samples: Sample 19 cannot be read from row 79 of" in said, said
    assert "stopped before the validation samples were complete" in said and "the samples are incomplete" in said


def check_same(batch: dict[str, torch.Tensor], wanted: dict[str, torch.Tensor]) -> None:
    assert batch.keys() == wanted.keys()
    for name, tensor in batch.items():
        assert tensor.dtype == wanted[name].dtype and torch.equal(tensor, wanted[name]), name
