"""Each simulation runs in a copy of the case folder, with its parameters in the files."""

from pathlib import Path

import pytest
from jobs import PROGRAMS, JobFolder

from mpidata.config import load_job
from mpidata.errors import JobFileError

SOLVER = """
import os
import numpy as np
import mpidata
here = os.getcwd()
for simulation in mpidata.solver.simulations():
    alpha, again, number, text = open("system/input.dat").read().split(maxsplit=3)
    assert float(alpha) == float(f"{simulation.parameters['alpha']:.6e}") and len(alpha) == 12
    assert float(again) == simulation.parameters["alpha"] and int(number) == simulation.id
    assert text in ("{alpha}", "{alpha} 1", "{alpha} 2"), text
    if text != "{alpha}" and simulation.id == 2:
        assert (text[-1] == "2") == os.path.exists(os.path.join(here, "../../../../../raised"))
    assert os.path.islink("mesh") and open("mesh/points").read() == "{{alpha}}"
    assert open("plain").read() == "{{alpha}}" and os.access("run.sh", os.X_OK) and os.readlink("to") == "plain"
    open("written", "x").close()
    if simulation.id == 2 and not os.path.exists(os.path.join(here, "../../../../../raised")):
        open(os.path.join(here, "../../../../../raised"), "x").close()
        raise ValueError("as asked")
    simulation.put(u=np.zeros((4, 6)))
    simulation.step(0.0)
"""
CASE = {"folder": "case", "fill": ["system/*"], "link": ["mesh"], "keep": "failed"}


def write(job: JobFolder, text: str = "{{alpha:.6e}} {{ alpha }} {{simulation}} ", **more: object) -> None:
    for name, content in {
        "system/input.dat": f"{text}",
        "mesh/points": "{{alpha}}",
        "plain": "{{alpha}}",
        "run.sh": "#!/bin/sh",
    }.items():
        path = job.path / "case" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    (job.path / "case" / "run.sh").chmod(0o755)
    (job.path / "case" / "to").unlink(missing_ok=True)
    (job.path / "case" / "to").symlink_to("plain")
    job.write(solver=SOLVER)
    job.job(
        trainers={"program": ["python", str(PROGRAMS / "drain.py")]},
        solvers={
            "groups": 2,
            "carried": {},
            "lifetime": "simulation",
            "program": ["python", "solver.py"],
            "case": {**CASE, **more},
        },
    )


def test_other_marks(folder: JobFolder) -> None:
    write(folder, "<<alpha:.6e>> <<alpha>> <<simulation>> {alpha}", marks=["<<", ">>"])
    result = folder.run()
    assert result.status == 0, result.logs()
    write(folder, "<<beta>>", marks=["<<", ">>"])
    with pytest.raises(JobFileError, match="has '<<beta>>', but there is no parameter"):
        load_job(folder.path / "job.yaml")
    write(folder, marks=["<<", "> >"])
    with pytest.raises(JobFileError, match="two texts of 1 to 15 letters without blanks"):
        load_job(folder.path / "job.yaml")


@pytest.mark.full
def test_each_simulation_has_its_own_folder_and_failed_ones_are_kept(folder: JobFolder) -> None:
    write(folder, "{{alpha:.6e}} {{ alpha }} {{simulation}} {alpha} {{try}}")
    result = folder.run()
    assert result.status == 0, result.logs()
    assert result.summary["simulations"] == {"requested": 4, "complete": 4, "failed": 0}
    assert result.run is not None and not (result.run / "cases").exists()
    assert [path.name for path in (result.run / "failed").iterdir()] == ["2-1"]
    assert (result.run / "failed" / "2-1" / "written").exists()
    assert sorted(path.name for path in (folder.path / "case").iterdir()) == ["mesh", "plain", "run.sh", "system", "to"]


@pytest.mark.parametrize(
    ("text", "more", "sentence"),
    [
        ("{{beta}}", {}, "input.dat has '{{beta}}', but there is no parameter. The names are simulation, alpha,"),
        ("{{alpha:d}}", {}, "input.dat has '{{alpha:d}}', which cannot be filled. Write {{name}} or {{name:.6e}}."),
        ("", {"folder": "cse"}, "'solvers.case.folder' is 'cse', but"),
        ("", {"fill": ["systm/*"]}, "'solvers.case.fill[0]' is 'systm/*', but"),
        ("", {"link": ["../case"]}, "'solvers.case.link[0]' is '../case', but"),
    ],
)
def test_what_cannot_be_filled_is_said_before_the_start(
    tmp_path: Path, text: str, more: dict[str, object], sentence: str
) -> None:
    folder = JobFolder(tmp_path)
    write(folder, text, **more)
    folder.write(train="")
    with pytest.raises(JobFileError) as caught:
        load_job(tmp_path / "job.yaml", [])
    assert sentence in str(caught.value)
