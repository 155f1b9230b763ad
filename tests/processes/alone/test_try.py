"""`mpidata try`: a script draws what a source gives, through the same buffers as in a job, without MPI."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from tried import attempt, drawn
from waiting import wait_until

from mpidata.cli import main
from mpidata.config import load_job
from mpidata.native.constants import DTYPES
from mpidata.run.plan import Plan
from mpidata.sampling.drawing import draw_parameters
from mpidata.trainer.standalone.sources import RandomSource


@pytest.mark.parametrize(
    "buffer",
    [
        "{policy: fifo, capacity: 20}",
        "{policy: firo, capacity: 30, watermark: 8}",
        "{policy: reservoir, capacity: 30, repeats: 1.5}",
    ],
)
def test_made_up_samples_are_drawn_like_in_a_job(folder: Path, buffer: str) -> None:
    arguments = ["train.py", "8", "means", "--made-up", "job.yaml", "--steps=4", "--set", f"buffer={buffer}"]
    number = 7 if "repeats" in buffer else 5
    assert attempt(folder, *arguments) == (3, f"mpidata try: batch {number} drawn, of 40 samples.\n")
    programs = ["solvers.function=null", 'solvers.program=["true"]', 'trainers.program=["true"]']
    job = load_job(str(folder / "job.yaml"), [*programs, "trainers.ranks=1"])
    source = RandomSource(Plan.of(job, folder), draw_parameters(job), 4)
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


def test_data_loader_workers_can_fork_while_the_first_samples_are_made(folder: Path) -> None:
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


@pytest.mark.parametrize("sampler", ["breed", '"whole:Sampler"'])
def test_learning_sampler_draws_all_simulations_in_advance(folder: Path, sampler: str) -> None:
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


def test_failing_source_is_an_error_not_the_end_of_the_stream(folder: Path) -> None:
    break_it = (
        "from mpidata.trainer.standalone.sources import RandomSource\nimport mpidata\n"
        "RandomSource.steps = lambda self, number: [][number]\n"
    )
    (folder / "train.py").write_text(break_it + "for batch in mpidata.MPIStreamDataset(batch_size=4):\n    pass\n")
    status, said = attempt(folder, "train.py", "--made-up", "job.yaml")
    assert status == 1 and "the samples are incomplete: IndexError: list index out of range" in said


def test_script_may_end_while_samples_are_made(folder: Path) -> None:
    """A torch thread that still runs when Python ends would end the process by SIGABRT."""
    slow = """
        import torch, mpidata.trainer.standalone.sources
        class Slow(mpidata.trainer.standalone.sources.RandomSource):
            def samples(self, validation):
                for sample in super().samples(validation):
                    torch.ones(1 << 26)
                    yield sample
        mpidata.trainer.standalone.sources.RandomSource = Slow
        mpidata.MPIStreamDataset(batch_size=4).validation()
        raise SystemExit(4)
    """
    (folder / "train.py").write_text(textwrap.dedent(slow))
    status, said = attempt(folder, "train.py", "--made-up", "job.yaml", "--steps=2", "--set", "validation.count=1")
    assert status == 4, said


def test_sigterm_ends_the_script_and_leaves_no_folder(folder: Path, tmp_path: Path) -> None:
    (folder / "train.py").write_text("import time\nopen('begun', 'w').close()\ntime.sleep(60)\n")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    command = [str(Path(sys.executable).parent / "mpidata"), "try", "train.py", "--made-up", "job.yaml"]
    process = subprocess.Popen(command, cwd=folder, env={**os.environ, "TMPDIR": str(scratch)})
    wait_until(lambda: (folder / "begun").exists())
    assert list(scratch.iterdir())
    process.terminate()
    assert process.wait(timeout=20) == 128 + signal.SIGTERM and not list(scratch.iterdir())


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
def test_mistakes_are_reported(
    folder: Path, arguments: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
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


@pytest.mark.parametrize("stream", [pytest.param(False, marks=pytest.mark.full), True])
def test_job_with_loaders_runs_one_in_the_script(folder: Path, stream: bool) -> None:
    if not stream:
        (folder / "job.yaml").write_text("trainers: {ranks: 2, program: [./not_there_yet]}\nloaders: {ranks: 3}\n")
    (folder / "train.py").write_text(LOADERS)
    status, said = attempt(folder, "train.py", "--made-up", "job.yaml")
    whole = f"{list(range(7))} {list(range(23))}"
    assert status == 0, said
    assert said.splitlines()[:4] == [whole, whole, "True True True", "mpidata try: 18 batches taken from the loader."]


def test_data_loader_in_a_job_without_loaders_is_refused(folder: Path) -> None:
    (folder / "train.py").write_text("import mpidata\nmpidata.DataLoader([1, 2])\n")
    status, said = attempt(folder, "train.py", "--made-up", "job.yaml", "--set", "loaders=null")
    assert status == 1 and "This job has no loaders" in said


def test_a_debugger_runs_the_script_and_torch_distributed_has_one_process(folder: Path) -> None:
    script = "import mpidata, torch.distributed as dist\nmpidata.init_process_group()\nprint(dist.get_world_size())\n"
    (folder / "train.py").write_text(script)
    debugger = [sys.executable, "-m", "pdb", "-c", "continue", "-c", "quit", "train.py"]
    status, said = attempt(folder, "--made-up", "job.yaml", "--", *debugger)
    assert status == 0 and "1" in said.splitlines()


def test_batches_kept_until_exit_are_freed_silently(folder: Path) -> None:
    code = """
        import os
        import sys
        import torch
        import mpidata
        sys.unraisablehook = lambda error, write=os.write: write(2, b"ignored")
        for number, batch in enumerate(mpidata.MPIStreamDataset(batch_size=8)):
            setattr(torch, f"kept_{number}", batch)  # goes after the variables of other modules
            class Kept:
                batch = [batch]  # a cycle, as each class is one
        """
    (folder / "keeps.py").write_text(textwrap.dedent(code))
    buffer = "buffer={policy: reservoir, capacity: 30, repeats: 1}"
    status, output = attempt(folder, "keeps.py", "--made-up", "job.yaml", "--steps=4", "--set", buffer)
    assert status == 0 and "ignored" not in output, output
