"""A death, spawned groups, checkpoints and a resume, with libmpidata under the sanitizers in all ranks."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from heat2d_job import HEAT2D, build_heat2d, write_heat2d_job
from jobs import JobFolder, python
from killing import check_exactly_once, job_processes, solver_ranks, wait_for_event
from sanitized import LIBRARIES, compile_c, objects

COUNT = 20
SANITIZER = "address,undefined"


def build(folder: Path, factory: pytest.TempPathFactory) -> None:
    """Build libmpidata and the heat example's solver."""
    build_heat2d(folder)
    compile_c(SANITIZER, "-shared", *objects(SANITIZER, factory), "-o", folder / "libmpidata.so", *LIBRARIES)
    library = [f"-L{folder}", "-lmpidata", f"-Wl,-rpath,{folder}"]
    compile_c(SANITIZER, HEAT2D / "heat2d.c", "-o", folder / "heat2d", *library, *LIBRARIES)


@pytest.mark.full
@pytest.mark.timeout(400)
def test_deaths_checkpoints_and_spawned_groups_are_clean(
    folder: JobFolder,
    require: Callable[[str], str],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built, reports = tmp_path_factory.mktemp("sanitized"), tmp_path_factory.mktemp("reports")
    build(built, tmp_path_factory)
    runtime = subprocess.run(
        [require("gcc"), "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    )
    write_heat2d_job(
        folder,
        built,
        COUNT,
        {"start": "spawn", "ranks_per_group": 2, "timeout_s": 60, "start_timeout_s": 120},
        program=python("trainers/census/census_resumed.py", "0.02"),
        checkpoint={"every_s": 1.0},
    )
    monkeypatch.setenv("MPIDATA_LIBRARY", str(built / "libmpidata.so"))
    # Preloaded into all processes, because Python is not instrumented. Other libraries' memory is not checked.
    monkeypatch.setenv("LD_PRELOAD", runtime.stdout.strip())
    options = f"detect_leaks=0:alloc_dealloc_mismatch=0:verify_asan_link_order=0:log_path={reports / 'report'}"
    monkeypatch.setenv("ASAN_OPTIONS", options)
    monkeypatch.setenv("UBSAN_OPTIONS", f"print_stacktrace=1:log_path={reports / 'report'}")
    started = time.monotonic()
    process = folder.start()
    event = wait_for_event(folder.path, "dispatch", timeout_s=120)
    solver_ranks(folder.path, ranks_per_group=2, trainers=2)[event["group"]][0].kill()
    wait_for_event(folder.path, "group_lost", timeout_s=60)
    wait_for_event(folder.path, "checkpoint", timeout_s=60)
    job_processes(folder.path, "trainer", trainers=2)[-1].kill()
    first = folder.finish(process, timeout=120, started=started)
    assert first.status == 1 and "--resume" in first.summary["error"], first.logs()
    result = folder.resume(first.run, timeout=300)
    told = "".join(path.read_text() for path in reports.iterdir())
    assert not told, told[:6000]
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    check_exactly_once(folder, result.run, COUNT)
