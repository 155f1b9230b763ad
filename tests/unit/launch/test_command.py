import os
import shlex
from pathlib import Path

import pytest
from launch_job import make_plan

from mpidata.errors import LaunchError
from mpidata.launch.starting.command import command_line, mpirun_command, mpirun_environment, shim_path


def _program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_mpirun_command_is_printed_as_a_shell_line(tmp_path: Path) -> None:
    plan = make_plan(tmp_path / "a folder", {})
    command = mpirun_command(Path("/mpi/bin/mpirun"), Path("/bin/mpidata-rank"), plan)
    placement = ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
    assert command == ["/mpi/bin/mpirun", "-n", "7", *placement, "/bin/mpidata-rank", str(plan.run)]
    line = command_line(command, {"A": "b c"})
    assert line.startswith("A='b c' /mpi/bin/mpirun -n 7 ")
    assert shlex.split(line)[1:] == command


def test_mpirun_command_of_a_fault_tolerant_job_enables_ulfm(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, {}, fault_tolerance="ulfm")
    command = mpirun_command(Path("/mpi/bin/mpirun"), Path("/bin/mpidata-rank"), plan)
    ulfm = ["--with-ft", "ulfm", "--prtemca", "state_base_recoverable", "1"]
    assert command[-7:] == [*ulfm, "/bin/mpidata-rank", str(plan.run)]


QUIET = {"PMIX_MCA_psensor": "^heartbeat,file"}


def test_mpirun_environment_for_root_folders_and_user_settings() -> None:
    root = QUIET | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    assert mpirun_environment(root=True) == root
    assert mpirun_environment(root=False) == QUIET
    folders = mpirun_environment(False, Path("/tmp/a"), Path("/dev/shm/b"))
    assert folders == QUIET | {
        "PRTE_MCA_prte_tmpdir_base": "/tmp/a",
        "OMPI_MCA_btl_sm_backing_directory": "/dev/shm/b",
    }
    user = {"OMPI_MCA_btl_sm_backing_directory": "/mine"}
    assert mpirun_environment(False, Path("/tmp/a"), Path("/dev/shm/b"), user | {"PMIX_MCA_psensor": ""}) == {
        "PRTE_MCA_prte_tmpdir_base": "/tmp/a"
    }


def test_temporary_folders_are_set_for_open_mpi_4_and_several_hosts() -> None:
    old = mpirun_environment(False, Path("/tmp/a"), Path("/dev/shm/b"), old=True)
    assert old == {"OMPI_MCA_orte_tmpdir_base": "/tmp/a", "OMPI_MCA_btl_vader_backing_directory": "/dev/shm/b"}
    several = mpirun_environment(False, Path("/tmp/a"), one_host=False)
    assert several == QUIET | {"PRTE_MCA_prte_local_tmpdir_base": "/tmp/a"}
    assert mpirun_environment(False, Path("/tmp/a"), old=True, one_host=False) == {}


def test_mpidata_rank_variable_overrides_the_installed_shim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shim = _program(tmp_path / "mpidata-rank")
    monkeypatch.setenv("MPIDATA_RANK", os.path.relpath(shim))
    assert shim_path() == shim
    monkeypatch.setenv("MPIDATA_RANK", str(tmp_path))
    with pytest.raises(LaunchError, match="MPIDATA_RANK"):
        shim_path()
    monkeypatch.delenv("MPIDATA_RANK")
    monkeypatch.setattr("mpidata.launch.starting.command.rank_program", lambda: shim)
    assert shim_path() == shim
