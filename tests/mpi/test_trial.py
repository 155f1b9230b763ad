"""`mpidata doctor --test`: small jobs that show whether an installation works."""

import json
import subprocess

import pytest
from jobs import BIN, environment


def doctor(**variables: str) -> tuple[int, dict[str, dict[str, str]]]:
    done = subprocess.run(
        [BIN / "mpidata", "doctor", "--test", "--json"],
        env=environment() | variables,
        capture_output=True,
        text=True,
        timeout=170,
    )
    return done.returncode, {line["check"]: line for line in json.loads(done.stdout)["checks"]}


def test_python_and_c_jobs_of_the_doctor_succeed() -> None:
    status, found = doctor()
    assert [found[f"job in {language}"]["state"] for language in ("Python", "C")] == ["ok", "ok"], found
    assert "20 samples, all correct" in found["job in C"]["found"] and status == 0


@pytest.mark.parametrize(
    ("variables", "check", "words"),
    [
        ({"OMPI_CC": "no-such-compiler"}, "job in C", ["does not build", "solver.c"]),
        ({"PYTHONPATH": "{folder}"}, "job in Python", ["0 of 20 samples: Trainer 0 (rank 1) ended with exit status 3"]),
    ],
)
def test_failed_jobs_of_the_doctor_are_reported(
    variables: dict[str, str], check: str, words: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("broken")
    variables = variables | {"TMPDIR": str(folder)}
    (folder / "sitecustomize.py").write_text("import os, sys\nif 'train.py' in sys.argv[0:1]: os._exit(3)\n")
    status, found = doctor(**{name: value.format(folder=folder) for name, value in variables.items()})
    assert status == 1 and found[check]["state"] == "failed", found
    assert all(word in found[check]["found"] for word in words), found
    assert len(list(folder.glob("mpidata-doctor-*/job.yaml"))) == 1
