"""What starts the ranks of a carried program."""

import stat
from pathlib import Path

import pytest

from mpidata.mpi import carried_launcher as own_launcher


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture(autouse=True)
def _no_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)


@pytest.mark.parametrize(
    ("version", "options"),
    [("mpirun (Open MPI) 5.0.1", ["--oversubscribe", "--bind-to", "none"]), ("HYDRA build details:", [])],
)
def test_launcher_belongs_to_the_mpi_that_the_program_is_linked_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, options: list[str]
) -> None:
    write(tmp_path / "bin" / "ldd", f"echo 'libmpi.so.40 => {tmp_path}/mpi/lib/libmpi.so.40 (0x7f)'")
    write(tmp_path / "bin" / "mpirun", "echo another")
    write(tmp_path / "mpi" / "bin" / "mpirun", f"echo '{version}'")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    command = own_launcher.launcher_of(["/bin/sh"], 3)
    assert command == (str(tmp_path / "mpi" / "bin" / "mpirun"), *options, "-n", "3")
    hosts = ["--map-by", "node", "--host", "{hosts}"] if options else ["-hosts", "{hosts}"]
    assert own_launcher.launcher_of(["/bin/sh"], 3, carriers=2) == (*command[:-2], *hosts, "-n", "3")


def test_one_rank_needs_no_launcher() -> None:
    assert own_launcher.launcher_of(["./missing"], 1) == ()


def test_launcher_on_the_path_is_used_if_the_program_links_no_mpi(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "bin" / "mpirun", "echo HYDRA build details:")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    assert own_launcher.launcher_of(["./missing"], 2) == (str(tmp_path / "bin" / "mpirun"), "-n", "2")


def test_srun_is_used_in_an_allocation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "srun", "")
    write(tmp_path / "scontrol", "echo 'MaxNodeCount = 5\nMaxStepCount            = 400'")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    command = own_launcher.launcher_of(["./missing"], 4, carriers=2)
    assert command[:4] == ("srun", "--overlap", "--exact", "--mem=0") and command[-2:] == ("-n", "4")
    assert "--nodelist={hosts}" in command and own_launcher.launcher_of(["./missing"], 1) == ()
    assert own_launcher.most_steps() == 400
    (tmp_path / "scontrol").unlink()
    assert own_launcher.most_steps() is None
