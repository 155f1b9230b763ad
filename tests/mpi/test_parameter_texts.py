"""Whole numbers and texts among the parameters come to programs, functions, trainers and files in the same words."""

import json
import subprocess
from itertools import product
from pathlib import Path

import pytest
from jobs import JobFolder, mpicc

from mpidata import RecordedDataset
from mpidata.native.build_flags import flags
from mpidata.run.folder import RunFolder
from mpidata.run.parameters import read_parameters
from mpidata.run.plan import Plan

MESHES = ("coarse", 'very "fine", 1=1 {é}')
LEVELS = (1, 2, 4)
SPACE = {  # a JobFolder sorts them
    "mesh": {"choices": list(MESHES)},
    "level": {"values": list(LEVELS)},
    "model": {"value": "k-epsilon"},
    "n": {"value": 3},
    "alpha": {"values": [0.5, 2.0]},
}
# It comes as arguments, environment, filled file, and from the library; all must agree.
CHECK = """
import json, os, sys
import numpy as np
import mpidata
names = ("mesh", "level", "model", "n", "alpha")
for simulation in mpidata.solver.simulations():
    got = simulation.parameters
    mesh, level, model, n, alpha = (got[name] for name in names)
    assert mesh in {meshes!r} and model == "k-epsilon" and level in (1.0, 2.0, 4.0), got
    told = [mesh, str(int(level)), model, "3", str(alpha)]
    assert sys.argv[1:6] == told, (sys.argv, told)
    assert [os.environ["MPIDATA_PARAM_" + name.upper()] for name in names] == told
    assert open("input.dat").read().split("|") == [*told, f"{{int(level):03d}}"]
    assert sys.argv[6:] == [f"--level={{int(level):03d}}", f"{{alpha:.3e}}"]
    simulation.put(u=np.full((4, 6), {meshes!r}.index(mesh) + 10 * level + 100 * alpha))
    simulation.step(0.0)
"""
TRAIN = """
import json
import mpidata
stream = mpidata.MPIStreamDataset(batch_size=1)
seen = []
for batch in stream:
    alpha, level, mesh, model, n = batch["parameters"][0].tolist()
    assert (batch["u"][0] == mesh + 10 * level + 100 * alpha).all() and (model, n) == (0, 3)
    seen.append((mesh, level, alpha))
print(json.dumps(sorted(seen)))
assert stream.parameter_texts == {{"mesh": {meshes!r}, "model": ("k-epsilon",)}}
assert stream.parameter_ranges["mesh"] == (0.0, 1.0)
"""
ARGUMENTS = ["{mesh}", "{level}", "{model}", "{n}", "{alpha}", "--level={level:03d}", "{alpha:.3e}"]
C_SOLVER = """
#include <stdio.h>
#include <string.h>
HEADER
#define MUST(call) do { if ((call) != MPIDATA_SUCCESS) { fprintf(stderr, "%s: %s\\n", #call, mpidata_last_error()); \\
    return 2; } } while (0)
int main(int argc, char **argv) {
    (void)argc, (void)argv;
    JOIN
    const int64_t shape[] = {4, 6};
    int64_t simulation;
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS) {
        double mesh, level, alpha, n, u[24];
        char text[MPIDATA_MAX_TEXT], model[10];
        MUST(mpidata_param("mesh", &mesh));
        MUST(mpidata_param("level", &level));
        MUST(mpidata_param("alpha", &alpha));
        MUST(mpidata_param("n", &n));
        MUST(mpidata_param_text("mesh", text, sizeof text));
        MUST(mpidata_param_text("model", model, sizeof model));
        const char *meshes[] = {"coarse", "very \\"fine\\", 1=1 {\\xc3\\xa9}"};
        if (strcmp(text, meshes[(int)mesh]) || strcmp(model, "k-epsilon") || n != 3) return 3;
        for (int i = 0; i < 24; i++) u[i] = mesh + 10 * level + 100 * alpha;
        MUST(mpidata_put("u", u, MPIDATA_FLOAT64, 2, shape));
        MUST(mpidata_step(0.0));
        MISTAKE
    }
    MUST(mpidata_finalize());
    return END;
}
"""
LINKED = {
    "HEADER": "#include <mpidata.h>",
    "JOIN": "MPI_Comm group; MPI_Init(&argc, &argv); MUST(mpidata_init(MPI_COMM_WORLD, &group));",
    "END": "MPI_Finalize()",
}
CARRIED = {"HEADER": "#include <mpidata_carried.h>", "JOIN": "MUST(mpidata_attach());", "END": "0"}


def write(folder: JobFolder, solvers: dict[str, object], **more: object) -> None:
    folder.write(train=TRAIN.format(meshes=MESHES))
    parameters = {"sampler": "grid", "space": SPACE}
    keys = {"trainers": {"program": ["python", "train.py"]}, "parameters": parameters, **more}
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


def build(folder: JobFolder, words: dict[str, str], mistake: str = "") -> None:
    text = C_SOLVER.replace("MISTAKE", mistake)
    for word, code in words.items():
        text = text.replace(word, code)
    (folder.path / "solver.c").write_text(text)
    linked = words is LINKED
    compiler, kinds = (mpicc(), ("cflags", "libs")) if linked else ("cc", ("carried",))
    more = [flag for kind in kinds for flag in flags(kind)]
    warnings = ["-Wall", "-Wextra", "-Wconversion", "-Werror"]
    subprocess.run([compiler, *warnings, "solver.c", *more, "-o", "solver"], cwd=folder.path, check=True)


@pytest.mark.parametrize("how", [{"carried": {}}, {"start": "spawn"}], ids=["carried", "spawned"])
def test_a_program_of_one_simulation(folder: JobFolder, how: dict[str, object]) -> None:
    (folder.path / "case").mkdir(parents=True)
    marks = "|".join(["{{mesh}}", "{{level}}", "{{model}}", "{{n}}", "{{alpha}}", "{{level:03d}}"])
    (folder.path / "case" / "input.dat").write_text(marks)
    folder.write(solver=CHECK.format(meshes=MESHES))
    program = ["python", "solver.py", *ARGUMENTS]
    case = {"folder": "case", "fill": ["*.dat"]}
    write(folder, {**how, "lifetime": "simulation", "program": program, "case": case}, record={})
    run = check(folder)
    rows = (run / "parameters.csv").read_text(encoding="utf-8").splitlines()
    assert rows[0] == "simulation,alpha,level,mesh,model,n" and rows[1] == "0,0.5,1.0,coarse,k-epsilon,3.0"
    plan = Plan.read(RunFolder(run).plan)
    table, _ = read_parameters(run / "parameters.csv", plan.parameters, 12, 0, plan.texts)
    assert table[:, 2].tolist() == [0.0, 1.0] * 6
    record = RecordedDataset(run / "record")
    assert record.parameter_texts == {"mesh": MESHES, "model": ("k-epsilon",)}
    assert sorted({float(record[i]["parameters"][2]) for i in range(len(record))}) == [0.0, 1.0]


def test_a_function(folder: JobFolder) -> None:
    folder.write(
        rod="import numpy as np\n"
        "def solve(mesh, level, model, n, alpha):\n"
        f"    assert model == 'k-epsilon' and isinstance(level, float)\n"
        f"    yield {{'u': np.full((4, 6), {MESHES!r}.index(mesh) + 10 * level + 100 * alpha)}}\n"
    )
    write(folder, {"function": "rod:solve"}, journal=True)
    run = check(folder)
    check(folder, replay=run)


@pytest.mark.parametrize("words", [LINKED, CARRIED], ids=["linked", "carried"])
def test_a_solver_in_c(folder: JobFolder, words: dict[str, str]) -> None:
    build(folder, words)
    write(folder, {"program": ["./solver"], **({} if words is LINKED else {"carried": {}})})
    check(folder)


@pytest.mark.parametrize("words", [LINKED, CARRIED], ids=["linked", "carried"])
@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        ('mpidata_param_text("level", text, sizeof text);', "Parameter 'level' is a number"),
        ('mpidata_param_text("model", text, 9);', "Parameter 'model': its text needs 10 bytes, and there are 9"),
        ('mpidata_param_text("mash", text, 9);', "Unknown parameter 'mash'"),
    ],
    ids=["number", "room", "unknown"],
)
def test_a_mistake_with_a_text_ends_the_job(folder: JobFolder, words: dict[str, str], mistake: str, said: str) -> None:
    build(folder, words, mistake)
    write(folder, {"program": ["./solver"], **({} if words is LINKED else {"carried": {}})})
    result = folder.run()
    assert result.status == 1
    assert said in result.output
