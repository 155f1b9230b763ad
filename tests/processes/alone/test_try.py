"""`mpidata try`: a script draws what a source gives, through the same buffers as in a job, without MPI."""

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from click.testing import CliRunner
from fake_library import make_plan
from recording import SAMPLES, content, make_plan_with_constants, make_plan_with_lengths, record

from mpidata import PackedCollate, RecordedDataset
from mpidata.alone.sources import MadeUp
from mpidata.cli import main
from mpidata.config import load_job
from mpidata.native.constants import DTYPES
from mpidata.run.plan import Plan
from mpidata.run.samplers import draw_parameters

JOB = """
trainers: {ranks: 2, program: [./not_there_yet]}
solvers: {groups: 3, function: "not_there:yet"}
parameters: {count: 10, space: {a: [0, 1], b: [2, 3]}}
validation: {count: 2}
fields: {u: {dtype: float32, shape: [5, 4]}, n: {dtype: int32, shape: [3]}}
samples: {statistics: {u: 1}}
loaders: {ranks: 1}
checkpoint: {every_s: 1}
"""
SCRIPT = """
import json, sys
import numpy as np
import mpidata

stream = mpidata.MPIStreamDataset(batch_size=int(sys.argv[1]))
stream.register(state=type("State", (), {"state_dict": dict, "load_state_dict": lambda self, state: None})())
whole = {"validation": [sample["u"].sum().item() for sample in stream.validation()]}
batches = []
for number, batch in enumerate(stream):
    stream.report(loss=1.0)
    stream.losses(batch, np.ones(len(batch["time"])))
    batches.append({name: value.tolist() for name, value in batch.items()})
    if sys.argv[2:] == ["leave"] and number == 2:
        break
whole |= {"batches": batches, "expected": stream.expected_batches, "resumed": stream.resumed}
if "means" in sys.argv:
    whole["means"] = {name: of.mean.tolist() for name, of in stream.statistics().items()}
whole["mpi"] = "mpi4py.MPI" in sys.modules
json.dump(whole, open("drawn.json", "w"))
sys.exit(3)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "train.py").write_text(SCRIPT)
    return tmp_path


def attempt(folder: Path, *arguments: str) -> tuple[int, str]:
    command = [str(Path(sys.executable).parent / "mpidata"), "try", *arguments]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    return done.returncode, done.stdout


def drawn(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / "drawn.json").read_text())
    return found


@pytest.mark.parametrize(
    "buffer",
    [
        "{policy: fifo, capacity: 20}",
        "{policy: firo, capacity: 30, watermark: 8}",
        "{policy: reservoir, capacity: 30, repeats: 1.5}",
    ],
)
def test_made_up_samples_come_as_they_would_in_a_job(folder: Path, buffer: str) -> None:
    arguments = ["train.py", "8", "means", "--made-up", "job.yaml", "--steps=4", "--set", f"buffer={buffer}"]
    number = 7 if "repeats" in buffer else 5
    assert attempt(folder, *arguments) == (3, f"mpidata try: batch {number} drawn, of 40 samples.\n")
    programs = ["solvers.function=null", 'solvers.program=["true"]', 'trainers.program=["true"]']
    job = load_job(str(folder / "job.yaml"), [*programs, "trainers.ranks=1"])
    source = MadeUp(Plan.of(job, folder), draw_parameters(job), 4)
    expected = {(sample.simulation, sample.step): sample for sample in source.samples(validation=False)}
    whole = drawn(folder)
    batches = whole["batches"]
    assert isinstance(batches, list) and len(batches) == whole["expected"] == number
    order = []
    for batch in batches:
        for i, key in enumerate(zip(batch["simulation"], batch["step"], strict=True)):
            sample = expected[key]
            order.append(key)
            assert np.array_equal(np.array(batch["u"][i], np.float32), sample.fields[0])
            assert batch["n"][i] == sample.fields[1].tolist() and batch["time"][i] == sample.time
            assert batch["parameters"][i] == sample.parameters.tolist()
    assert (order == list(expected)) == ("fifo" in buffer)
    assert set(order) <= set(expected) and (len(set(order)) == 40) == ("repeats" not in buffer)
    validation = [float(sample.fields[0].sum()) for sample in source.samples(validation=True)]
    assert whole["validation"] == pytest.approx([validation[i] for i in (0, 2, 4, 6, 1, 3, 5, 7)], abs=1e-4)
    assert whole["resumed"] == 0 and whole["mpi"] is False
    means = whole["means"]
    assert isinstance(means, dict) and means["u"] == pytest.approx(
        np.mean([sample.fields[0] for sample in expected.values()], axis=(0, 1), dtype=float)
    )
    assert means["n"] == pytest.approx(np.mean([sample.fields[1] for sample in expected.values()]))


def test_every_dtype_can_be_made_up(folder: Path) -> None:
    fields = {name: {"dtype": name, "shape": [50]} for name in DTYPES}
    script = """
        import torch, mpidata
        for sample in mpidata.MPIStreamDataset():
            for name in {names}:
                tensor = sample[name]
                assert tensor.dtype == getattr(torch, name), name
                assert len(set(tensor.tolist())) == (2 if name == "bool" else len(set(tensor.tolist()))) > 1, name
                assert name[0] in "bciu" or abs(tensor.double().std() - 1) < 0.5
        print("=> all")
    """
    (folder / "train.py").write_text(textwrap.dedent(script).replace("{names}", repr(list(fields))))
    changes = ["--set", f"fields={json.dumps(fields)}", "--set", "samples={}"]
    status, said = attempt(folder, "train.py", "--made-up", "job.yaml", "--steps=1", *changes)
    assert status == 0 and "=> all" in said, said


def test_constants_are_the_same_in_a_simulation(folder: Path) -> None:
    fields = {
        "xy": {"shape": ["nodes", 2], "per": "simulation"},
        "ends": {"shape": ["edges"], "dtype": "int64", "index": "nodes", "per": "simulation"},
        "box": {"shape": [3], "per": "simulation", "optional": True},
        "u": {"shape": ["nodes"]},
    }
    script = """
        import mpidata
        stream, seen = mpidata.MPIStreamDataset(batch_size=4), {}
        for batch in stream:
            for nodes, simulation in zip(batch["nodes"].tolist(), batch["simulation"].tolist()):
                held = stream.constants(simulation)
                assert held["xy"].shape == (nodes, 2) and held["ends"].max() < nodes
                assert bool(held["box"].any()) == bool(held["box_given"])
                assert seen.setdefault(simulation, held["xy"].tolist()) == held["xy"].tolist()
                for none in (2**64 + simulation, -1, simulation + 0.5, "0"):
                    try:
                        raise AssertionError(stream.constants(none))
                    except mpidata.StreamError:
                        pass
        assert len(seen) == 10 and len({len(xy) for xy in seen.values()}) > 1
        assert len(stream.validation()[0]["xy"]) == stream.validation()[0]["nodes"]
        print("=> all")
    """
    (folder / "train.py").write_text(textwrap.dedent(script))
    changes = ["--set", f"fields={json.dumps(fields)}", "--set", "samples={}"]
    status, said = attempt(folder, "train.py", "--made-up", "job.yaml", "--steps=6", *changes)
    assert status == 0 and "=> all" in said, said


def test_workers_of_other_data_are_forked_while_the_first_samples_are_made(folder: Path) -> None:
    script = """
        import mpidata, torch
        from torch.utils.data import DataLoader, TensorDataset
        stream = mpidata.MPIStreamDataset(batch_size=4)
        rows = TensorDataset(torch.arange(20.0))
        assert sum(len(values) for (values,) in DataLoader(rows, batch_size=3, num_workers=1)) == 20
        print("=>", sum(len(batch["step"]) for batch in stream))
    """
    (folder / "train.py").write_text(textwrap.dedent(script))
    status, said = attempt(folder, "train.py", "--made-up", "job.yaml", "--steps=2")
    assert status == 0 and "=> " in said, said


def test_recorded_samples_come_with_their_contents(folder: Path) -> None:
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
        f"mpidata: {folder}/no_record is no folder. Give the folder that `record.path` of the job file names "
        "(train.py line 6)\n",
    )


@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("make", [make_plan_with_lengths, make_plan_with_constants])
def test_recorded_samples_with_lengths_come_packed(folder: Path, make: Callable[..., Plan], window: int) -> None:
    """Also constants, of two tries of each simulation, and windows, which were not recorded as such."""
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


def test_a_record_without_windows_is_refused(folder: Path) -> None:
    """Of a job that recorded every third step."""
    plan = make_plan(run=folder / "run", record_path=folder / "record")
    record(plan, [sample for sample in SAMPLES if sample[1] % 3 == 0])
    fields = {f.name: {"dtype": f.dtype, "shape": list(f.shape)} for f in plan.fields}
    changes = {"fields": fields, "parameters": {"count": 3, "space": dict.fromkeys(plan.parameters, [0, 1])}}
    changes |= {"validation": {"count": 1}, "trainers": {"program": ["python"]}}
    sets = [f"--set={name}={json.dumps(value)}" for name, value in changes.items()]
    (folder / "train.py").write_text("import mpidata\nprint(len(list(mpidata.MPIStreamDataset(batch_size=2))))\n")
    arguments = ["train.py", "--record", "record", "--job", "job.yaml", *sets]
    status, said = attempt(folder, *arguments, "--set=samples={window: 2}")
    assert status == 1 and "holds no 2 steps of one simulation that are 1 apart" in said, said
    status, said = attempt(folder, *arguments, "--set=samples={window: 2, stride: 3}")
    assert status == 0 and said.splitlines()[0] == "9", said


def test_a_damaged_validation_sample_ends_the_wait_for_them(folder: Path) -> None:
    plan = make_plan(run=folder / "run", record_path=folder / "record")
    record(plan, SAMPLES)
    with h5py.File(folder / "record" / "trainer-0000.h5", "r+") as file:
        file["fields/temperature"].resize(79, axis=0)
    fields = {f.name: {"dtype": f.dtype, "shape": list(f.shape)} for f in plan.fields}
    changes = {"fields": fields, "parameters": {"count": 3, "space": dict.fromkeys(plan.parameters, [0, 1])}}
    changes |= {"validation": {"count": 1}, "samples": {}, "trainers": {"program": ["python"]}}
    sets = [f"--set={name}={json.dumps(value)}" for name, value in changes.items()]
    status, said = attempt(folder, "train.py", "5", "--record", "record", "--job", "job.yaml", *sets)
    assert status == 1 and "mpidata try: no more samples come: Sample 19 cannot be read from row 79 of" in said, said
    assert "stopped before the validation samples were complete" in said and "there would have been more" in said


def check_same(batch: dict[str, torch.Tensor], wanted: dict[str, torch.Tensor]) -> None:
    assert batch.keys() == wanted.keys()
    for name, tensor in batch.items():
        assert tensor.dtype == wanted[name].dtype and torch.equal(tensor, wanted[name]), name


@pytest.mark.parametrize("sampler", ["breed", '"whole:Sampler"'])
def test_a_sampler_that_learns_draws_all_at_once(folder: Path, sampler: str) -> None:
    (folder / "whole.py").write_text(
        "import numpy as np\nclass Sampler:\n    def __init__(self, space, seed): pass\n"
        "    def sample(self, count): return np.random.default_rng(1).random((count, 2))\n"
        "    def observe(self, *what): pass\n"
    )
    arguments = ["--made-up", "job.yaml", "--set", f"parameters.sampler={sampler}", "--steps=4"]
    status, said = attempt(folder, "train.py", "8", *arguments)
    assert status == 3 and said == "mpidata try: batch 5 drawn, of 40 samples.\n"
    batches = drawn(folder)["batches"]
    assert isinstance(batches, list)
    assert len({tuple(row) for batch in batches for row in batch["parameters"]}) == 10


def test_samples_that_cannot_be_given_are_no_end(folder: Path) -> None:
    break_it = "import mpidata.alone.sources\nmpidata.alone.sources.MadeUp.steps = lambda self, number: [][number]\n"
    (folder / "train.py").write_text(break_it + "for batch in mpidata.MPIStreamDataset(batch_size=4):\n    pass\n")
    status, said = attempt(folder, "train.py", "--made-up", "job.yaml")
    assert status == 1 and "there would have been more: IndexError: list index out of range" in said


def test_a_script_ends_while_samples_are_made(folder: Path) -> None:
    """A thread of torch that Python finds at its end would end the process by SIGABRT."""
    slow = """
        import torch, mpidata.alone.sources
        class Slow(mpidata.alone.sources.MadeUp):
            def samples(self, validation):
                for sample in super().samples(validation):
                    torch.ones(1 << 26)
                    yield sample
        mpidata.alone.sources.MadeUp = Slow
        mpidata.MPIStreamDataset(batch_size=4).validation()
        raise SystemExit(4)
    """
    (folder / "train.py").write_text(textwrap.dedent(slow))
    status, said = attempt(folder, "train.py", "--made-up", "job.yaml", "--steps=2", "--set", "validation.count=1")
    assert status == 4, said


def test_a_script_may_leave_its_loop(folder: Path) -> None:
    status, said = attempt(folder, "train.py", "4", "leave", "--made-up", "job.yaml")
    assert status == 3 and "batch 3 drawn" in said and len(drawn(folder)["batches"]) == 3  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["train.py"], "Give either --record with the folder of a record, or --made-up with a job file."),
        (
            ["train.py", "--record", "."],
            "is not in a run folder, so its job file is not known. Give it: --job job.yaml.",
        ),
        (["no_program", "--made-up", "job.yaml"], "Cannot start no_program: No such file or directory."),
        (["train.py", "--made-up", "job.yaml", "--set", "buffer.capacity=0"], "buffer.capacity"),
    ],
)
def test_mistakes_are_told(folder: Path, arguments: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(main, ["try", *arguments])
    assert done.exit_code == 2 and sentence in done.output.replace("\n", " ")


LOADERS = """
import random
import numpy as np, torch, mpidata

np.save("a.npy", np.arange(10)), np.save("b.npy", np.arange(10, 23))
before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()
loader = mpidata.DataLoader(list(range(7)), batch_size=3, shuffle=True, share=True)
rows = mpidata.FileDataset("[ab].npy", batch_size=4)
for epoch in range(2):
    print(sorted(sum((batch.tolist() for batch in loader), [])), sorted(sum((b["data"].tolist() for b in rows), [])))
mpidata.report(loss=1.0)
mpidata.register(model=torch.nn.Identity())
after = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()
print(mpidata.in_job(), torch.equal(before[0], after[0]), before[1:] == after[1:])
"""


@pytest.mark.parametrize("stream", [False, True])
def test_a_job_with_loaders_has_one_in_the_script(folder: Path, stream: bool) -> None:
    if not stream:
        (folder / "job.yaml").write_text("trainers: {ranks: 2, program: [./not_there_yet]}\nloaders: {ranks: 3}\n")
    (folder / "train.py").write_text(LOADERS)
    status, said = attempt(folder, "train.py", "--made-up", "job.yaml")
    whole = f"{list(range(7))} {list(range(23))}"
    assert status == 0, said
    assert said.splitlines()[:4] == [whole, whole, "True True True", "mpidata try: 18 batches taken from the loader."]


def test_a_job_without_loaders_has_none(folder: Path) -> None:
    (folder / "train.py").write_text("import mpidata\nmpidata.DataLoader([1, 2])\n")
    status, said = attempt(folder, "train.py", "--made-up", "job.yaml", "--set", "loaders=null")
    assert status == 1 and "This job has no loaders" in said


def test_a_debugger_runs_the_script_and_torch_distributed_has_one_process(folder: Path) -> None:
    script = "import mpidata, torch.distributed as dist\nmpidata.init_process_group()\nprint(dist.get_world_size())\n"
    (folder / "train.py").write_text(script)
    debugger = [sys.executable, "-m", "pdb", "-c", "continue", "-c", "quit", "train.py"]
    status, said = attempt(folder, "--made-up", "job.yaml", "--", *debugger)
    assert status == 0 and "1" in said.splitlines()
