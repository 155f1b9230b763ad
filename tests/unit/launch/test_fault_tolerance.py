"""Whether a job may outlive its solvers."""

from pathlib import Path
from typing import Literal

import pytest

from mpidata.config import load_job
from mpidata.errors import LaunchError
from mpidata.launch.starting.fault_tolerance import (
    check_elastic,
    choose,
    describe_mpi,
    has_ulfm,
    is_on,
    of_mpirun,
    without_ulfm,
)

_OPEN_MPI = "package:Open MPI\nident:{}\noptions:ft_support:yes\noptions:ft_mpi_support:{}\n"


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        (_OPEN_MPI.format("5.0.11", "yes"), True),
        (_OPEN_MPI.format("10.1.0", "yes"), True),
        (_OPEN_MPI.format("5.0.11", "no"), False),
        (_OPEN_MPI.format("4.1.4", "yes"), False),
        ("ident:4.1.4\noptions:ft_support:no\n", False),
        ("", False),
    ],
)
def test_ulfm_is_detected_from_ompi_info(description: str, expected: bool) -> None:
    assert has_ulfm(description) is expected


@pytest.mark.parametrize(
    ("wanted", "available", "expected"),
    [("auto", True, "ulfm"), ("auto", False, "none"), (True, True, "ulfm"), (False, True, "none")],
)
def test_fault_tolerance_depends_on_the_key_and_ulfm(
    wanted: bool | Literal["auto"], available: bool, expected: str
) -> None:
    assert choose(wanted, available) == expected
    assert is_on(wanted, {"OMPI_MCA_mpi_ft_enable": "1"} if available else {}) == expected


def test_required_fault_tolerance_without_ulfm_is_refused() -> None:
    with pytest.raises(LaunchError, match="'launch.fault_tolerance' is true, but this MPI is started without ULFM."):
        choose(True, False)


def test_elastic_trainers_need_ulfm(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    text = "trainers: {{program: [python, train.py], ranks: 2, elastic: {}}}\nloaders: {{ranks: 1}}\n"
    (tmp_path / "job.yaml").write_text(text.format("true"))
    elastic = load_job(tmp_path / "job.yaml")
    check_elastic(elastic, "ulfm")
    with pytest.raises(LaunchError, match="^'trainers.elastic' is given, but this MPI is started without ULFM, so a"):
        check_elastic(elastic, "none")
    (tmp_path / "job.yaml").write_text(text.format("false"))
    check_elastic(load_job(tmp_path / "job.yaml"), "none")


def test_ulfm_is_detected_by_the_ompi_info_beside_mpirun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mpirun = tmp_path / "mpirun"
    assert describe_mpi(mpirun) == "" and of_mpirun("auto", mpirun) == "none"
    info = tmp_path / "ompi_info"
    info.write_text(f"#!/bin/sh\ntest $1 = --parsable && printf '{_OPEN_MPI.format('5.1.0', 'yes')}'\n")
    info.chmod(0o755)
    assert (of_mpirun("auto", mpirun), of_mpirun(False, mpirun)) == ("ulfm", "none")
    info.write_text("#!/bin/sh\nexit 1\n")
    assert of_mpirun("auto", mpirun) == "none"


def test_warning_without_ulfm_names_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    record = {"mpi": "Open MPI v4.1.4, package: Debian"}
    monkeypatch.setattr("mpidata.native.linked_mpi.build_facts", lambda: record)
    assert without_ulfm("auto") == "Open MPI 4.1.4 runs without ULFM: if any rank dies, this run ends there."
    assert without_ulfm(False).startswith("launch.fault_tolerance is false: ")
