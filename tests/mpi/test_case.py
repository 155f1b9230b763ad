"""Each simulation runs in a copy of the case folder, with its parameters in the files."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from jobs import DRAIN, JobFolder, python, sets

from mpidata.config import load_job
from mpidata.errors import JobFileError
from mpidata.native.build_flags import carrier_program

CASE = {"folder": "case", "fill": ["system/*"], "link": ["mesh"], "keep": "failed"}


def write(
    job: JobFolder,
    text: str = "{{alpha:.6e}} {{ alpha }} {{simulation}} ",
    how: dict[str, object] | None = None,
    program: str = "solvers/python/case_files.py",
    **more: object,
) -> None:
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
    (job.path / "case" / "pipe").unlink(missing_ok=True)
    os.mkfifo(job.path / "case" / "pipe")
    job.job(
        trainers=DRAIN,
        solvers={
            "groups": 2,
            **(how or {"carried": {}}),
            "lifetime": "simulation",
            "program": python(program),
            "case": {**CASE, **more},
        },
    )


def test_custom_marks_are_filled_and_checked(folder: JobFolder) -> None:
    write(folder, "<<alpha:.6e>> <<alpha>> <<simulation>> {alpha}", marks=["<<", ">>"])
    result = folder.run()
    assert result.status == 0, result.logs()
    write(folder, "<<beta>>", marks=["<<", ">>"])
    with pytest.raises(JobFileError, match="has '<<beta>>', but there is no such parameter"):
        load_job(folder.path / "job.yaml")
    write(folder, marks=["<<", "> >"])
    with pytest.raises(JobFileError, match="two texts of 1 to 15 letters without blanks"):
        load_job(folder.path / "job.yaml")


@pytest.mark.parametrize(
    "how", [pytest.param({"carried": {}}, marks=pytest.mark.full), {"start": "spawn"}], ids=["carried", "spawned"]
)
def test_each_simulation_has_its_own_copy_and_failed_copies_are_kept(folder: JobFolder, how: dict[str, object]) -> None:
    write(folder, "{{alpha:.6e}} {{ alpha }} {{simulation}} {alpha} {{try}}", how)
    result = folder.run()
    assert result.status == 0, result.logs()
    assert result.summary["simulations"] == {"requested": 4, "complete": 4, "failed": 0}
    assert result.run is not None and not (result.run / "cases").exists()
    assert [path.name for path in (result.run / "failed").iterdir()] == ["2-1"]
    assert (result.run / "failed" / "2-1" / "written").exists()
    assert sorted(path.name for path in (folder.path / "case").iterdir()) == [
        "mesh",
        "pipe",
        "plain",
        "run.sh",
        "system",
        "to",
    ]


@pytest.mark.full
@pytest.mark.parametrize("keep", ["failed", "none"])
@pytest.mark.parametrize("dies", [0, 1])
@pytest.mark.parametrize("of", ["itself", "parent"])
def test_the_ranks_of_a_spawned_group_share_a_folder(folder: JobFolder, dies: int, keep: str, of: str) -> None:
    write(folder, how={"start": "spawn", "ranks_per_group": 2}, fill=["input.dat"], link=[], keep=keep)
    (folder.path / "case" / "input.dat").write_text("{{alpha}} {{simulation}} {{try}} {{group}} {{ranks}}")
    program = json.dumps(python("solvers/python/case_ranks.py", dies, of))
    result = folder.run(*sets(f"solvers.program={program}", "record={path: record}"))
    assert result.status == 0, result.logs()
    assert result.summary["simulations"] == {"requested": 4, "complete": 4, "failed": 0}
    assert len(result.summary["retries"]) == 1 and result.run is not None and not (result.run / "cases").exists()
    kept = [path.name for path in (result.run / "failed").iterdir()] if (result.run / "failed").exists() else []
    assert kept == (["1-1"] if keep == "failed" else [])


@pytest.mark.parametrize(
    ("text", "more", "sentence"),
    [
        ("{{beta}}", {}, "input.dat has '{{beta}}', but there is no such parameter. The names are simulation, alpha,"),
        (
            "{{alpha:s}}",
            {},
            "has '{{alpha:s}}', which cannot be filled. Write {{name}} or {{name:.6e}} or {{name:4d}}:",
        ),
        ("{{alpha:d}}", {}, "but alpha is not a whole number: give it 'integers' in 'parameters.space', or correct"),
        ("{{hosts:.3f}}", {}, "but hosts is not a number."),
        ("n = {{alpha}\nm = {{alpha}}", {}, "has '{{alpha', but no '}}' after it on the same line. Close it, or"),
        ("{{alpha:0000000000000020.10e}}", {}, "which cannot be filled. Write {{name}}"),
        ("", {"folder": "cse"}, "'solvers.case.folder' is 'cse', but"),
        ("", {"folder": ".", "fill": []}, "but its copies would be inside it, in"),
        ("", {"in": "case/mesh/copies"}, "or correct 'solvers.case.in'."),
        ("", {"in": "/proc/here"}, "'solvers.case.in' is '/proc/here', but no folder can be created in /proc."),
        ("", {"fill": ["systm/*"]}, "'solvers.case.fill[0]' is 'systm/*', but"),
        ("", {"link": ["../case"]}, "'solvers.case.link[0]' is '../case', but"),
    ],
)
def test_mistakes_in_case_folders_are_reported_before_the_start(
    tmp_path: Path, text: str, more: dict[str, object], sentence: str
) -> None:
    folder = JobFolder(tmp_path)
    write(folder, text, **more)
    folder.write(train="")
    with pytest.raises(JobFileError) as caught:
        load_job(tmp_path / "job.yaml", [])
    assert sentence in str(caught.value)


def test_stray_signs_are_ignored_and_the_innermost_mark_is_filled(folder: JobFolder) -> None:
    text = "cat << END > in.txt\n<<alpha:.6e>> x << 3; <<simulation:04d>> << <<simulation>>\n<<"
    write(folder, text, marks=["<<", ">>"], program="solvers/python/case_stray_marks.py")
    result = folder.run()
    assert result.status == 0, result.logs()


@pytest.mark.parametrize(("mode", "user"), [(0o555, 65534), (0o500, 65534), (0o000, 65534), (0o000, 0)])
def test_copy_with_unwritable_folders_is_removed(tmp_path: Path, mode: int, user: int) -> None:
    if os.geteuid() != 0:
        pytest.skip("to become another user needs root")
    with tempfile.TemporaryDirectory(prefix="mpidata-test-") as name:
        run = Path(name)
        (run / "private").mkdir()
        (run / "template" / "mesh" / "deep").mkdir(parents=True)
        (run / "template" / "mesh" / "deep" / "points").touch()
        (run / "private" / "case").write_text(f"folder {run / 'template'}\nkeep none\nmarks {{{{ }}}}\n")
        for path in (run, *run.rglob("*")):
            os.chown(path, user, user)
        for what in ("--make-case", "--end-case"):
            command = [str(carrier_program()), what, str(run), "0", "simulation=3", "try=1"]
            done = subprocess.run(command, user=user, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            copy = run / "cases" / "3-g0"
            assert copy.exists() == (what == "--make-case")
            if copy.exists():
                (copy / "mesh" / "deep").chmod(mode)
                (copy / "mesh").chmod(mode)
        assert not (run / "cases").exists()


def test_filling_linked_or_too_large_files_is_refused(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path)
    write(folder, fill=["mesh/points"], link=["mesh"])
    folder.write(train="")
    with pytest.raises(JobFileError, match="which 'solvers.case.link' links. Remove it from one of them"):
        load_job(tmp_path / "job.yaml", [])
    write(folder, fill=["plain"])
    os.truncate(tmp_path / "case" / "plain", (64 << 20) + 1)
    with pytest.raises(JobFileError, match="plain, which has more than 64 MiB. Fill a smaller file"):
        load_job(tmp_path / "job.yaml", [])
