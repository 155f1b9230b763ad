"""Settings that a program makes before it calls the library neither break nor are changed by it (solvers/keeps.c)."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from jobs import PROGRAMS, JobFolder, config, environment, python

# One with a decimal comma; one with an 8-bit alphabet in which i is not the small letter of I.
LOCALES = {"de_DE.UTF-8": "1,5", "tr_TR.ISO-8859-9": "1,5"}


@pytest.fixture(scope="module")
def locales(tmp_path_factory: pytest.TempPathFactory, require: Callable[[str], str]) -> Path:
    """Build a folder for LOCPATH."""
    folder = tmp_path_factory.mktemp("locales")
    for name in LOCALES:
        language, _, alphabet = name.partition(".")
        command = [require("localedef"), "-i", language, "-f", alphabet, str(folder / name)]
        done = subprocess.run(command, capture_output=True, text=True)
        if not (folder / name).is_dir():
            pytest.skip(f"the package locales is not installed: {done.stderr}")
    return folder


@pytest.fixture(params=LOCALES)
def locale(request: pytest.FixtureRequest, locales: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("LOCPATH", str(locales))
    monkeypatch.setenv("LC_ALL", request.param)
    return f"locale {request.param}, 1.5 is {LOCALES[request.param]}"


def write_job(folder: JobFolder, **solvers: object) -> None:
    folder.job(
        trainers={"program": python("trainers/checks/check_kept.py")},
        solvers={"timeout_s": 60.5, **solvers},
        parameters={"count": 4, "space": {"viscosity": [0.1, 0.4]}},
        fields={
            "u": {"dtype": "float32", "shape": [12]},
            "w": {"dtype": "float64", "shape": [12]},
            "whole": {"dtype": "int32", "shape": [2]},
        },
        samples={"statistics": True},
    )


def check(folder: JobFolder, log: str) -> None:
    result = folder.run(timeout=60)
    assert result.status == 0, result.logs()
    assert "seen 80" in result.log("trainer")
    assert log in result.logs() and "kept, alarms came" in result.logs()
    statistics = json.loads((result.run / "statistics.json").read_text())["fields"] if result.run else {}
    for name, bad in ("u", 6), ("w", 5):  # too large, NaN or infinite
        assert statistics[name]["not_finite"] == [80 * bad] and statistics[name]["count"] == [80 * (12 - bad)]
    assert statistics["u"]["min"] == [np.float32(-0.1)] and statistics["w"]["min"] == [-0.1]


@pytest.mark.parametrize(
    "locale", [list(LOCALES)[0], pytest.param(list(LOCALES)[1], marks=pytest.mark.full)], indirect=True
)
@pytest.mark.parametrize("start", ["split", pytest.param("spawn", marks=pytest.mark.full)])
def test_settings_of_a_solver_rank_are_kept(
    folder: JobFolder, compiled: Callable[[str], Path], locale: str, start: str
) -> None:
    write_job(folder, start=start, program=[str(compiled("keeps"))])
    check(folder, locale)


@pytest.mark.parametrize(
    "locale", [pytest.param(list(LOCALES)[0], marks=pytest.mark.full), list(LOCALES)[1]], indirect=True
)
def test_settings_of_a_carried_program_are_kept(folder: JobFolder, carried: Callable[..., Path], locale: str) -> None:
    write_job(folder, carried={"ranks": 1}, program=[str(carried("keeps")), "closed"])
    check(folder, locale)


@pytest.mark.parametrize("mode", ["rank", "carried"])
def test_settings_of_a_program_outside_a_job_are_kept(
    compiled: Callable[[str], Path], carried: Callable[..., Path], locale: str, mode: str
) -> None:
    program = compiled("keeps") if mode == "rank" else carried("keeps")
    variables = {**environment(), "MPIDATA_PARAM_VISCOSITY": "0.1"}
    done = subprocess.run([program], env=variables, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert locale in done.stderr and f"viscosity {(0.1).hex().replace('1.', '1,')}" in done.stderr
    done = subprocess.run(
        [program], env={**variables, "MPIDATA_PARAM_VISCOSITY": "0,1"}, capture_output=True, text=True
    )
    assert done.returncode == 3 and "MPIDATA_PARAM_VISCOSITY='0,1' is not a finite number, such as 0.5" in done.stderr


def test_fortran_program_with_traps_gets_single_precision_parameters(
    tmp_path: Path, require: Callable[[str], str]
) -> None:
    source = PROGRAMS / "solvers/fortran/single_precision.f90"
    traps = "-ffpe-trap=invalid,zero,overflow,underflow,inexact,denormal"
    command = [require("gfortran"), "-O2", traps, source, "-o", "solver", *config("--fcarried")]
    subprocess.run(command, cwd=tmp_path, check=True)
    values = {"GREAT": "1e300", "LEAST": "1e-300", "SMALL": "-1e-42", "TENTH": "0.1"}
    variables = {f"MPIDATA_PARAM_{name}": value for name, value in values.items()}
    done = subprocess.run([tmp_path / "solver"], env={**environment(), **variables}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with np.errstate(all="ignore"):
        single = np.array([float(value) for value in values.values()]).astype(np.float32).view(np.uint32)
    words = [f"{name.lower()} {bits:08X}" for name, bits in zip(values, single.tolist(), strict=True)]
    assert done.stdout.splitlines() == [*words, " T F T"]
