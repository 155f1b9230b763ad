"""Inference ranks in a job file."""

import re
from pathlib import Path

import pytest

from mpidata.config import Job, load_job
from mpidata.errors import JobFileError
from mpidata.run.plan import Plan

TEXT = """\
trainers: {program: [python, train.py]}
solvers: {program: [./heat2d], groups: 2}
parameters: {count: 8, space: {alpha: [0.01, 0.1]}}
fields: {u: {shape: [4]}}
inference: {ranks: 2, function: "net:answer", spares: 1, timeout_s: 5}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").touch()
    (tmp_path / "heat2d").touch(mode=0o755)
    (tmp_path / "net.py").write_text("def answer(inputs):\n    return inputs\n")
    return tmp_path


def load(folder: Path, *overrides: str) -> Job:
    (folder / "job.yaml").write_text(TEXT)
    return load_job(folder / "job.yaml", overrides)


def problems(folder: Path, *overrides: str) -> list[str]:
    with pytest.raises(JobFileError) as caught:
        load(folder, *overrides)
    return [re.sub(r" \(--set .*\)$", "", line).removeprefix("job.yaml: ") for line in caught.value.problems]


def test_inference_ranks_precede_servers_in_the_world(folder: Path) -> None:
    job = load(folder, "servers={ranks: 1}")
    assert job.layout == "1 scheduler, 1 trainer, 2 groups of 1, 2 inference ranks, 1 spare and 1 server"
    plan = Plan.parse(Plan.of(job, folder / "run").text())
    assert plan.world == job.world_size == 8
    roles = [("solver", 1), ("inference", 0), ("inference", 1), ("inference", 2), ("server", 0)]
    assert [plan.role_of(rank)[:2] for rank in range(3, 8)] == roles
    assert (plan.inference, plan.inference_spares, plan.inference_timeout_s) == (2, 1, 5.0)
    assert plan.rank_of_inference(2) == 6 and plan.rank_of_inference(3) is None


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("inference.function=nets:answer", "'inference.function' is 'nets:answer', but there is no module 'nets' in"),
        ("inference.function=net:answers", "has no 'answers'. Did you mean 'answer'?"),
        ("inference.weights=net.pt", "'inference.weights' is 'net.pt', but"),
        ("journal=true", "'journal' is true: answers are not in the journal"),
    ],
)
def test_invalid_inference_settings_are_refused(folder: Path, setting: str, said: str) -> None:
    assert any(said in problem for problem in problems(folder, setting)), problems(folder, setting)
