from pathlib import Path

import pytest
from click.testing import CliRunner
from launch_job import write_job

import mpidata
from mpidata import cli
from mpidata.launch.starting.launcher import Launcher
from mpidata.mpi.mpi_name import mpi_of_library
from mpidata.native import build_flags
from mpidata.native.installation import folders_of


@pytest.fixture
def run() -> CliRunner:
    return CliRunner()


def test_version(run: CliRunner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    result = run.invoke(cli.main, ["--version"])
    built_with = build_flags.build_facts()["mpi"]
    first, second = result.output.splitlines()
    assert result.exit_code == 0 and first == f"mpidata {mpidata.__version__}"
    assert second == f"built with {mpi_of_library(built_with)}"
    monkeypatch.setattr(build_flags, "folders", lambda: folders_of(tmp_path / "share" / "mpidata"))
    assert "\nbuilt with no MPI: run `pip install .`\n" in run.invoke(cli.main, ["--version"]).output


def test_check_prints_ranks_and_simulations(tmp_path: Path, run: CliRunner) -> None:
    job = write_job(tmp_path)
    result = run.invoke(cli.main, ["check", str(job), "--set", "validation.count=2"])
    assert result.exit_code == 0
    assert result.output == f"{job}: correct. 7 ranks, 5 simulations with 1 parameter each.\n"
    assert not (tmp_path / "runs").exists()
    (tmp_path / "files.yaml").write_text("trainers: {program: [sh, trainer.sh]}\nloaders: {ranks: 3}\n")
    result = run.invoke(cli.main, ["check", str(tmp_path / "files.yaml")])
    assert result.output == f"{tmp_path / 'files.yaml'}: correct. 5 ranks, no simulations.\n"


def test_check_refuses_elastic_trainers_without_ulfm(
    tmp_path: Path, run: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = tmp_path / "files.yaml"
    job.write_text("trainers: {ranks: 2, program: [sh, trainer.sh], elastic: true}\nloaders: {ranks: 1}\n")
    (tmp_path / "trainer.sh").touch()
    monkeypatch.setattr(Launcher, "fault_tolerance", lambda self: "ulfm")
    assert run.invoke(cli.main, ["check", str(job)]).exit_code == 0
    monkeypatch.setattr(Launcher, "fault_tolerance", lambda self: "none")
    result = run.invoke(cli.main, ["check", str(job)])
    assert (
        result.exit_code == 2 and "'trainers.elastic' is given, but this MPI is started without ULFM" in result.output
    )


@pytest.mark.parametrize("command", ["check", "run"])
def test_bad_job_file_is_refused_without_creating_a_run(
    tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_STEP_ID"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SystemExit) as ended:
        cli.main([command, str(write_job(tmp_path)), "--set", "buffer.capcity=[1]", "--set", "seed=x"])
    told = capsys.readouterr()
    assert ended.value.code == 2 and told.out == ""
    assert "'buffer.capcity'" in told.err and "'capacity'" in told.err and "seed" in told.err
    assert not (tmp_path / "runs").exists()


def test_missing_job_file_is_refused(tmp_path: Path, run: CliRunner) -> None:
    result = run.invoke(cli.main, ["check", str(tmp_path / "gone.yaml")])
    assert result.exit_code == 2 and "gone.yaml" in result.output


def test_unknown_launcher_is_refused(tmp_path: Path, run: CliRunner) -> None:
    result = run.invoke(cli.main, ["run", str(write_job(tmp_path))], env={"FLUX_TASK_RANK": "0"})
    assert result.exit_code == 2 and "FLUX_TASK_RANK=0" in result.output


def test_config_prints_the_build_flags(run: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_flags, "flags", lambda kind: [f"-{kind}", "a b"])
    result = run.invoke(cli.main, ["config", "--libs", "--cflags"])
    assert result.output == "-cflags 'a b' -libs 'a b'\n"
    result = run.invoke(cli.main, ["config"])
    assert result.exit_code == 2 and "--cflags, --libs" in result.output
    result = run.invoke(cli.main, ["config", "--cflags", "--libs", "--carried"])
    assert result.exit_code == 2 and "linked with one library. Give --libs or --carried alone" in result.output
    for kind in build_flags.KINDS:
        assert run.invoke(cli.main, ["config", f"--{kind}"]).exit_code == 0
