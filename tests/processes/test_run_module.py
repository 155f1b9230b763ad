"""Programs that mpidata starts do not import modules from the working directory."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mpidata
from mpidata.doctor import probe
from mpidata.run_module import module_command

PLANTED = ("mpi4py", "numpy", "h5py", "yaml", "json", "pkgutil", "matplotlib", "signal", "contextlib")


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory in which another user has put modules; the file `run` says which were imported."""
    for name in (*PLANTED, "mpidata/__init__", "mpidata/scheduler/__init__"):
        (tmp_path / f"{name}.py").parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'run')!r}, 'a').write({name!r} + ' ')\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("path", ["", "/nowhere", None])
def test_modules_in_the_working_directory_are_not_imported(
    planted: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, path: str | None
) -> None:
    if path is not None:
        monkeypatch.setenv("PYTHONPATH", path)
    assert probe.ask("mpi4py")[0] is not None
    for module, arguments in (("mpidata", ["--version"]), ("mpidata.reporting", ["gone"]), ("mpidata.scheduler", [])):
        folder = tmp_path_factory.mktemp("job") if module == "mpidata.scheduler" else ""
        variables = {**os.environ, "MPIDATA_RUN": str(tmp_path_factory.mktemp("run"))}
        subprocess.run(module_command(module, *arguments, folder=folder), env=variables, capture_output=True)
    assert not (planted / "run").exists(), (planted / "run").read_text()


def test_given_folder_is_first_on_the_path_and_other_entries_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "job" / "mpidata").mkdir(parents=True)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "shows.py").write_text(
        "import sys, mpidata\nprint(sys.path[0], sys.argv[1:], mpidata.__file__)\n"
    )
    (tmp_path / "job" / "mpidata" / "__init__.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    command = module_command("shows", "a", "b c", folder=tmp_path / "job")
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout == f"{tmp_path / 'job'} ['a', 'b c'] {mpidata.__file__}\n", done.stderr


def test_working_directory_in_pythonpath_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shows.py").write_text("print('here')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = subprocess.run(module_command("shows"), capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout == "here\n", done.stderr


def test_source_folder_that_hides_the_installation_is_reported(tmp_path: Path) -> None:
    package = Path(mpidata.__file__).parent
    shutil.copytree(package, tmp_path / "mpidata", ignore=shutil.ignore_patterns("lib", "__pycache__"))
    there = tmp_path / "site" / "mpidata" / "lib"
    there.mkdir(parents=True)
    (there / "libmpidata.so.0").touch()
    code = "from mpidata.native.loading import find; find()"
    variables = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=variables, capture_output=True, text=True)
    assert f"{tmp_path}/mpidata is a source folder without libmpidata, and hides the mpidata that is" in done.stderr
    assert f"installed in {there.parent}: Python searches {tmp_path} first. Start Python in another" in done.stderr


def test_output_to_a_full_disk_fails_with_one_sentence() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "mpidata", "config", "--prefix"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 2
    assert done.stderr == "mpidata: cannot write: No space left on device. Free disk space, or redirect the output.\n"
