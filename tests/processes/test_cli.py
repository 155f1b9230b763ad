import functools
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from launch_job import clean_environment, write_job
from waiting import wait_until

import mpidata


@pytest.mark.parametrize("command", [["check"], ["run"], ["run", "--dry-run"]])
def test_ctrl_c_while_reading_the_job_file_exits_silently_with_130(tmp_path: Path, command: list[str]) -> None:
    job, reads = write_job(tmp_path), tmp_path / "reads"
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from mpidata.config import load;"
        f"load.open_regular = lambda *_: (open({str(reads)!r}, 'w').close(), signal.pause());"
        "from mpidata.cli import main; main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, *command, str(job)],
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(reads.exists, alive=process)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=20) == ("", "") and process.returncode == 130


@pytest.mark.parametrize(
    ("command", "number"),
    [("run", signal.SIGTERM), ("run", signal.SIGUSR1), ("run", signal.SIGINT), ("check", signal.SIGINT)],
)
def test_signal_while_modules_load_ends_the_command_with_one_line(tmp_path: Path, command: str, number: int) -> None:
    loads = tmp_path / "loads"
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / "click.py").write_text(f"import signal\nopen({str(loads)!r}, 'w').close()\nsignal.pause()\n")
    arguments = [Path(sys.executable).with_name("mpidata"), command, write_job(tmp_path)]
    variables = clean_environment(PYTHONPATH=str(tmp_path / "slow"))
    taken = functools.partial(signal.signal, number, signal.SIG_DFL)  # the tests' parent may ignore it
    process = subprocess.Popen(arguments, env=variables, stderr=subprocess.PIPE, text=True, preexec_fn=taken)
    wait_until(loads.exists, alive=process)
    process.send_signal(number)
    said = f"mpidata: {signal.Signals(number).name} came before the job was started. Run the same command again.\n"
    if number == signal.SIGINT:
        said = "mpidata: Ctrl-C came before the command began.\n"
    assert process.communicate(timeout=20)[1] == said and process.returncode == (130 if number == signal.SIGINT else 75)
    assert not (tmp_path / "runs").exists()


def test_command_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "mpidata", "--version"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith(f"mpidata {mpidata.__version__}")


@pytest.mark.parametrize(
    ("modules", "slow"),
    [
        ("mpidata.cli", {"torch", "mpi4py", "numpy", "scipy", "pydantic"}),
        ("mpidata.launch.starting.local, mpidata.sampling.drawing", {"torch", "mpi4py", "scipy.stats", "h5py"}),
        ("mpidata.scheduler.__main__", {"torch", "scipy", "h5py", "rich", "pydantic"}),
        ("mpidata.trainer.join, mpidata.checkpoint.snapshots", {"torch", "scipy", "pydantic"}),
    ],
)
def test_startup_modules_import_no_slow_packages(modules: str, slow: set[str]) -> None:
    code = f"import sys, {modules}; print(*sorted({slow!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "\n", done.stderr
