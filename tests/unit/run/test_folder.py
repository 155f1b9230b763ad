import ast
import errno
import fcntl
import os
import threading
from pathlib import Path

import pytest
from launch_job import make_plan, write_job

from mpidata.config import load_job
from mpidata.errors import LaunchError, MpidataError
from mpidata.launch.starting.folder.prepare import next_run, prepare_run
from mpidata.record.file import RecordFile
from mpidata.record.layout import Header
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.run.rank_files import PlannedRun
from mpidata.sampling.parameters_file import read_parameters


def test_new_run_folder_contains_its_files(tmp_path: Path) -> None:
    job = load_job(write_job(tmp_path), ["seed=5", "validation.count=2"])
    assert next_run(job) == tmp_path / "runs" / "job" / "1" and not (tmp_path / "runs").exists()
    run, plan, lock = prepare_run(job)
    os.close(lock)
    assert run.path == tmp_path / "runs" / "job" / "1"
    assert sorted(path.name for path in run.path.iterdir()) == [
        "exits",
        "job.yaml",
        "logs",
        "parameters.csv",
        "private",
    ]
    assert Plan.read(run.plan) == plan and plan.seed == 5 and plan.run == run.path
    assert read_parameters(run.parameters, plan.parameters, plan.simulations, plan.validation)[0].shape == (5, 1)
    assert load_job(run.job) == job


def test_run_that_another_process_just_looks_at_is_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, _, lock = prepare_run(load_job(write_job(tmp_path)))
    os.close(lock)
    looking = open(run.lock)
    fcntl.flock(looking, fcntl.LOCK_SH)
    monkeypatch.setattr("mpidata.run.folder.time.sleep", lambda seconds: looking.close())
    os.close(run.hold())
    assert looking.closed


def test_run_numbers_increase(tmp_path: Path) -> None:
    job = load_job(write_job(tmp_path), ["name=heat", "output=elsewhere/../out"])
    assert prepare_run(job)[0].path == tmp_path / "out" / "heat" / "1"
    (tmp_path / "out" / "heat" / "11").mkdir()
    (tmp_path / "out" / "heat" / "12.old").mkdir()
    assert prepare_run(job)[0].path.name == "12"
    assert next_run(job).name == "13"


def test_two_runs_never_share_a_folder(tmp_path: Path) -> None:
    job = load_job(write_job(tmp_path))
    paths: list[Path] = []
    threads = [threading.Thread(target=lambda: paths.append(prepare_run(job)[0].path)) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(int(path.name) for path in paths) == list(range(1, 13))


def test_run_folder_that_cannot_be_created_raises_an_error(tmp_path: Path) -> None:
    job = load_job(write_job(tmp_path)).model_copy(update={"output": "/proc/none"})
    with pytest.raises(LaunchError, match=r"Cannot make a run folder in /proc/none/job: .*'output'"):
        prepare_run(job)


def test_full_disk_leaves_no_run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_plan(run: PlannedRun) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    job = load_job(write_job(tmp_path))
    monkeypatch.setattr(PlannedRun, "write_plan", write_plan)
    with pytest.raises(LaunchError, match="Cannot make a run folder in .*/runs/job: No space left on device"):
        prepare_run(job)
    assert list((tmp_path / "runs" / "job").iterdir()) == [] and next_run(job).name == "1"


def test_parameters_that_cannot_be_drawn_leave_no_run_folder(tmp_path: Path) -> None:
    path = write_job(tmp_path)
    job = load_job(path)
    (tmp_path / "bad.py").write_text("class Sampler:\n    pass\n")
    bad = job.model_copy(update={"parameters": job.parameters.model_copy(update={"sampler": "bad:Gone"})})
    with pytest.raises(MpidataError):
        prepare_run(bad)
    assert not (tmp_path / "runs").exists()


def test_record_of_another_run_prevents_a_new_run_folder(tmp_path: Path) -> None:
    job = load_job(write_job(tmp_path), ["record.path=all"])
    (tmp_path / "all").mkdir()
    run, _, lock = prepare_run(job)
    os.close(lock)
    RecordFile(tmp_path / "all" / "trainer-0000.h5", Header.of(Plan.read(run.plan), 0)).close()
    with pytest.raises(MpidataError, match=f"trainer-0000.h5 belongs to another run, {run.path}. Move the folder away"):
        prepare_run(job)
    assert next_run(job).name == "2"


def test_log_names_contain_rank_and_role(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, {})
    names = [PlannedRun(RunFolder(plan.run), plan).log(rank).name for rank in range(7)]
    assert names[0] == "rank-0000-scheduler.log" and names[2] == "rank-0002-trainer-1.log"
    assert names[4] == "rank-0004-solver-0-1.log" and names[5] == "rank-0005-solver-1-0.log"


def test_only_the_folder_module_spells_the_names_of_run_files(tmp_path: Path) -> None:
    properties = (name for name, value in vars(RunFolder).items() if isinstance(value, property))
    names = {getattr(RunFolder(tmp_path), name).name for name in properties if name != "is_removed"}
    assert {"exits", "stop", "summary.json", "plan"} < names
    root = Path(__file__).parents[3]
    modules = [*(root / "mpidata").rglob("*.py"), *(root / "launch").rglob("*.py")]
    for path in (path for path in modules if path.name != "folder.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and isinstance(node.right, ast.Constant):
                assert node.right.value not in names, f"{path}:{node.lineno}: use RunFolder"
