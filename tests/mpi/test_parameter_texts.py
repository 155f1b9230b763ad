"""Whole numbers and texts as parameters reach programs, functions, trainers and files in the same form."""

import json
from itertools import product
from pathlib import Path

import pytest
from jobs import DRAIN, JobFolder, python
from programs.mesh_names import MESHES

from mpidata import RecordedDataset
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.sampling.parameters_file import read_parameters

LEVELS = (1, 2, 4)
SPACE = {  # a JobFolder sorts them
    "mesh": {"choices": list(MESHES)},
    "level": {"values": list(LEVELS)},
    "model": {"value": "k-epsilon"},
    "n": {"value": 3},
    "alpha": {"values": [0.5, 2.0]},
}
TRAINER = "trainers/checks/check_texts.py"
ARGUMENTS = ["{mesh}", "{level}", "{model}", "{n}", "{alpha}", "--level={level:03d}", "{alpha:.3e}"]


def write(folder: JobFolder, solvers: dict[str, object], **more: object) -> None:
    parameters = {"sampler": "grid", "space": SPACE}
    keys = {"trainers": {"program": python(TRAINER)}, "parameters": parameters, **more}
    folder.job(**keys, solvers={"groups": 2, **solvers})


def check(folder: JobFolder, replay: Path | None = None) -> Path:
    again = [folder.command()[0], "run", "--replay", str(replay)]
    result = folder.run(command=again if replay else None)
    assert result.status == 0, result.logs()
    seen = [list(map(float, key)) for key in product((0, 1), LEVELS, (0.5, 2.0))]
    told = next(line for line in result.log("trainer").splitlines() if line.startswith("[["))
    assert json.loads(told) == seen
    assert result.run is not None
    return result.run


def solver_in_c(request: pytest.FixtureRequest, is_carried: bool, *mistake: str) -> dict[str, object]:
    """Return the keys of `solvers`."""
    build = request.getfixturevalue("carried" if is_carried else "compiled")
    return {"program": [str(build("texts")), *mistake], **({"carried": {}} if is_carried else {})}


@pytest.mark.parametrize(
    "how",
    [{"carried": {}}, pytest.param({"start": "spawn"}, marks=pytest.mark.full)],
    ids=["carried", "spawned"],
)
def test_text_parameters_reach_a_program_of_one_simulation(folder: JobFolder, how: dict[str, object]) -> None:
    (folder.path / "case").mkdir(parents=True)
    marks = "|".join(["{{mesh}}", "{{level}}", "{{model}}", "{{n}}", "{{alpha}}", "{{level:03d}}"])
    (folder.path / "case" / "input.dat").write_text(marks)
    program = python("solvers/python/checks_texts.py", *ARGUMENTS)
    case = {"folder": "case", "fill": ["*.dat"]}
    torch = {"trainers": {"program": python(TRAINER, "torch")}}
    write(folder, {**how, "lifetime": "simulation", "program": program, "case": case}, **torch, record={})
    run = check(folder)
    rows = (run / "parameters.csv").read_text(encoding="utf-8").splitlines()
    assert rows[0] == "simulation,alpha,level,mesh,model,n" and rows[1] == "0,0.5,1.0,coarse,k-epsilon,3.0"
    plan = Plan.read(RunFolder(run).plan)
    table, _ = read_parameters(run / "parameters.csv", plan.parameters, 12, 0, plan.texts)
    assert table[:, 2].tolist() == [0.0, 1.0] * 6
    record = RecordedDataset(run / "record")
    assert record.parameter_texts == {"mesh": MESHES, "model": ("k-epsilon",)}
    assert sorted({float(record[i]["parameters"][2]) for i in range(len(record))}) == [0.0, 1.0]


def test_text_parameters_reach_a_function_and_its_replay(folder: JobFolder) -> None:
    write(folder, {"function": "functions.texts:solve"}, journal=True)
    run = check(folder)
    check(folder, replay=run)


@pytest.mark.parametrize("is_carried", [False, True], ids=["linked", "carried"])
def test_text_parameters_reach_a_c_solver(folder: JobFolder, request: pytest.FixtureRequest, is_carried: bool) -> None:
    write(folder, solver_in_c(request, is_carried))
    check(folder)


SAID = {
    "number": "Parameter 'level' is a number",
    "room": "Parameter 'model': its text needs 10 bytes, but there are 9",
    "unknown": "Unknown parameter 'mash'",
}


@pytest.mark.parametrize(
    ("mistake", "is_carried"),
    [
        ("number", False),
        ("room", True),
        ("unknown", False),
        *(pytest.param(*of, marks=pytest.mark.full) for of in (("number", True), ("room", False), ("unknown", True))),
    ],
)
def test_mistakes_with_text_parameters_fail_the_job(
    folder: JobFolder, request: pytest.FixtureRequest, mistake: str, is_carried: bool
) -> None:
    write(folder, solver_in_c(request, is_carried, mistake), trainers=DRAIN)
    result = folder.run()
    assert result.status == 1
    assert SAID[mistake] in result.output
