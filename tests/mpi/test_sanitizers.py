"""A whole job under the sanitizers: C solvers that send blocks, C trainers with their receive threads."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from jobs import BIN, PROGRAMS, JobFolder, environment
from test_exactness import FIELDS

ROOT = Path(__file__).parents[2]
OPTIONS = {
    # MPI's own memory is not ours to judge, and is not instrumented.
    "address,undefined": {"ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1", "UBSAN_OPTIONS": "halt_on_error=1"},
    "thread": {
        "TSAN_OPTIONS": "halt_on_error=1:ignore_noninstrumented_modules=1:exitcode=66",
        "UCX_MEM_EVENTS": "no",  # its hooks call the sanitizer from a thread that is not set up yet
        "PMIX_MCA_gds": "hash",  # the default maps memory where ThreadSanitizer has its own
    },
}


@pytest.mark.parametrize("policy", ["reservoir", "fifo"])
@pytest.mark.parametrize("sanitizer", OPTIONS)
def test_a_job_is_clean(
    folder: JobFolder, require: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, sanitizer: str, policy: str
) -> None:
    for name, value in OPTIONS[sanitizer].items():
        monkeypatch.setenv(name, value)
    sources = sorted((ROOT / "c_api" / "src").rglob("*.c"))
    include = [f"-I{ROOT / 'c_api' / folder_name}" for folder_name in ("include", "src")]
    flags = ["-std=gnu11", "-g", "-O1", "-fno-omit-frame-pointer", f"-fsanitize={sanitizer}", *include]
    for name in ("pattern", "trainer"):
        command = [
            BIN / "mpicc",
            *flags,
            PROGRAMS / f"{name}.c",
            *sources,
            "-o",
            folder.path / name,
            "-lm",
            "-lpthread",
        ]
        done = subprocess.run(command, env=environment(), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    folder.job(
        trainers={"ranks": 2, "program": ["./trainer"]},
        solvers={"groups": 2, "ranks_per_group": 2, "program": ["./pattern", "10"]},
        parameters={"count": 20, "space": {"alpha": [0.0, 1.0]}},
        validation={"count": 2},
        fields=FIELDS,
        buffer={"policy": policy, "capacity": 24, **({"watermark": 8} if policy == "reservoir" else {})},
    )
    result = folder.run(timeout=120)
    assert result.status == 0, result.logs()
    for trainer in range(2):
        assert "validation 1" in result.log("trainer", trainer)
        if policy == "reservoir":
            assert "pages 0" in result.log("trainer", trainer)
        _, _, recorded = result.log("trainer", trainer).partition("recorded ")
        numbers = recorded.split()[::2]
        assert numbers[0] == numbers[1] and int(numbers[0]) > 40, recorded
        assert "Sanitizer" not in result.log("trainer", trainer)
    assert os.listdir(folder.path / "runs" / "job" / "1" / "exits") == []
