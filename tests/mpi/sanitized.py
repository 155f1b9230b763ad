"""The C library under a sanitizer, compiled once for all tests of a run, whatever they link it to."""

import fcntl
import os
import subprocess
from pathlib import Path

import pytest
from jobs import environment, mpicc

ROOT = Path(__file__).parents[2]
INCLUDE = [f"-I{ROOT / 'c_api' / name}" for name in ("include", "src")]
LIBRARIES = ["-lm", "-lpthread"]
_WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Werror"]


def flags(sanitizer: str) -> list[str]:
    """Return the compiler's flags to compile or link what runs with the library."""
    return ["-g", "-O1", "-fno-omit-frame-pointer", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all"]


def compile_c(sanitizer: str, *arguments: object, folder: Path | None = None) -> None:
    """Call the compiler of mpidata's MPI, with C11 and GNU extensions."""
    command = [mpicc(), "-std=gnu11", *flags(sanitizer), *INCLUDE, *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def objects(sanitizer: str, factory: pytest.TempPathFactory) -> list[Path]:
    """The library's object files, for a program or for a shared library."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / f"sanitized-{sanitizer}"
    folder.mkdir(exist_ok=True)
    sources = sorted(path for path in (ROOT / "c_api" / "src").rglob("*.c") if path.parent.name != "carried")
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            compile_c(sanitizer, "-fPIC", *_WARNINGS, "-c", *sources, folder=folder)
            (folder / "done").touch()
    return [folder / f"{source.stem}.o" for source in sources]
