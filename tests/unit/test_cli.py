import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from launch_job import clean_environment, write_job
from waiting import wait_until

import mpidata
from mpidata import cli
from mpidata.native import build_flags
from mpidata.native.mpi_name import mpi_of_library


@pytest.fixture
def run() -> CliRunner:
    return CliRunner()


def test_version(run: CliRunner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    result = run.invoke(cli.main, ["--version"])
    built_with = build_flags.build_facts()["mpi"]
    first, second = result.output.splitlines()
    assert result.exit_code == 0 and first == f"mpidata {mpidata.__version__}"
    assert second == f"built with {mpi_of_library(built_with)}"
    monkeypatch.setattr(build_flags, "prefix", lambda: tmp_path)
    assert "\nbuilt with no MPI: run `pip install .`\n" in run.invoke(cli.main, ["--version"]).output


def test_check(tmp_path: Path, run: CliRunner) -> None:
    job = write_job(tmp_path)
    result = run.invoke(cli.main, ["check", str(job), "--set", "validation.count=2"])
    assert result.exit_code == 0
    assert result.output == f"{job}: correct. 7 ranks, 5 simulations with 1 parameter each.\n"
    assert not (tmp_path / "runs").exists()
    (tmp_path / "files.yaml").write_text("trainers: {program: [sh, trainer.sh]}\nloaders: {ranks: 3}\n")
    result = run.invoke(cli.main, ["check", str(tmp_path / "files.yaml")])
    assert result.output == f"{tmp_path / 'files.yaml'}: correct. 5 ranks, no simulations.\n"


@pytest.mark.parametrize("command", ["check", "run"])
def test_a_bad_job_file(tmp_path: Path, run: CliRunner, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_STEP_ID"):
        monkeypatch.delenv(name, raising=False)
    job = write_job(tmp_path)
    result = run.invoke(cli.main, [command, str(job), "--set", "buffer.capcity=[1]", "--set", "seed=x"])
    assert result.exit_code == 2 and result.stdout == ""
    assert "'buffer.capcity'" in result.stderr and "'capacity'" in result.stderr and "seed" in result.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("command", [["check"], ["run"], ["run", "--dry-run"]])
def test_ctrl_c_while_the_job_file_is_read(tmp_path: Path, command: list[str]) -> None:
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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_while_modules_are_loaded_asks_for_another_start(tmp_path: Path, number: int) -> None:
    loads = tmp_path / "loads"
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / "click.py").write_text(f"import signal\nopen({str(loads)!r}, 'w').close()\nsignal.pause()\n")
    command = [Path(sys.executable).with_name("mpidata"), "run", write_job(tmp_path)]
    variables = clean_environment(PYTHONPATH=str(tmp_path / "slow"))
    process = subprocess.Popen(command, env=variables, stderr=subprocess.PIPE, text=True)
    wait_until(loads.exists, alive=process)
    process.send_signal(number)
    said = f"mpidata: {signal.Signals(number).name} came before the job was started. Run the same command again.\n"
    assert process.communicate(timeout=20)[1] == said and process.returncode == 75
    assert not (tmp_path / "runs").exists()


def test_the_command_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "mpidata", "--version"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith(f"mpidata {mpidata.__version__}")


def test_no_job_file(tmp_path: Path, run: CliRunner) -> None:
    result = run.invoke(cli.main, ["check", str(tmp_path / "gone.yaml")])
    assert result.exit_code == 2 and "gone.yaml" in result.stderr


def test_a_launcher_that_is_not_known(tmp_path: Path, run: CliRunner) -> None:
    result = run.invoke(cli.main, ["run", str(write_job(tmp_path))], env={"FLUX_TASK_RANK": "0"})
    assert result.exit_code == 2 and "FLUX_TASK_RANK=0" in result.stderr


def test_config(run: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_flags, "flags", lambda kind: [f"-{kind}", "a b"])
    result = run.invoke(cli.main, ["config", "--libs", "--cflags"])
    assert result.output == "-cflags 'a b' -libs 'a b'\n"
    result = run.invoke(cli.main, ["config"])
    assert result.exit_code == 2 and "--cflags, --libs" in result.output
    result = run.invoke(cli.main, ["config", "--cflags", "--libs", "--carried"])
    assert result.exit_code == 2 and "linked with one library. Give --libs or --carried alone" in result.stderr
    for kind in build_flags.KINDS:
        assert run.invoke(cli.main, ["config", f"--{kind}"]).exit_code == 0


@pytest.mark.parametrize(
    ("modules", "slow"),
    [
        ("mpidata.cli", {"torch", "mpi4py", "numpy", "scipy", "pydantic"}),
        ("mpidata.launch.starting.local, mpidata.run.samplers", {"torch", "mpi4py", "scipy.stats", "h5py"}),
        ("mpidata.scheduler.__main__", {"torch", "scipy", "h5py", "rich", "pydantic"}),
        ("mpidata.trainer.join, mpidata.checkpoint.taking", {"torch", "scipy", "pydantic"}),
    ],
)
def test_what_starts_with_each_job_is_light(modules: str, slow: set[str]) -> None:
    code = f"import sys, {modules}; print(*sorted({slow!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "\n", done.stderr
