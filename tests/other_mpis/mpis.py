"""Environments with other MPIs, made once and kept in build/mpis until the sources change."""

import fcntl
import hashlib
import os
import shlex
import subprocess
import sys
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
KINDS = {"mpich": "MPICH 5", "debian-mpich": "MPICH 4", "debian-openmpi": "Open MPI 4"}
_SOURCES = ["c_api", "fortran_api", "launch", "mpidata", "slurm_templates", "setup.py", "tools/make-mpi.sh"]
_PROGRAMS = ROOT / "tests" / "mpi" / "programs"
SIM = "def simulate(alpha):\n    for step in range(5):\n        yield {'u': [[alpha + step] * 6] * 4}\n"
_PRODUCTS = {"__pycache__", "bin", "lib", "include", "share"}


@dataclass(frozen=True)
class Mpi:
    """An environment with an MPI and mpidata built for it."""

    kind: str
    name: str
    bin: Path

    @property
    def environment(self) -> dict[str, str]:
        """Variables of the activated environment, with which the programs of tests/mpi find numpy_stream."""
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} if os.getuid() == 0 else {}
        paths = {"PATH": f"{self.bin}{os.pathsep}/usr/bin{os.pathsep}/bin", "PYTHONPATH": str(_PROGRAMS)}
        return {**os.environ, **root, **paths}

    def run(self, *command: str | Path, cwd: Path, timeout: float = 120) -> "subprocess.CompletedProcess[str]":
        words = [str(word) for word in command]
        if (self.bin / words[0]).exists():
            words[0] = str(self.bin / words[0])
        return subprocess.run(
            words, cwd=cwd, env=self.environment, capture_output=True, text=True, timeout=timeout, errors="replace"
        )

    def config(self, *kinds: str, cwd: Path) -> list[str]:
        return shlex.split(self.run("mpidata", "config", *(f"--{kind}" for kind in kinds), cwd=cwd).stdout)

    @property
    def mpicc(self) -> str:
        return self.config("mpicc", cwd=ROOT)[0]


def _digest() -> str:
    digest = hashlib.sha256()
    for source in _SOURCES:
        path = ROOT / source
        for file in sorted([path] if path.is_file() else path.rglob("*")):
            inside = file.relative_to(ROOT).parts
            if file.is_file() and not _PRODUCTS.intersection(inside[1:]) and file.suffix != ".pyc":
                digest.update(f"{file.relative_to(ROOT)}\n".encode() + file.read_bytes())
    return digest.hexdigest()


def _all() -> Path:
    """Return the folder of all environments; its path has no blanks, because MPICH's mpicc does not quote them."""
    folder = ROOT / "build" / "mpis"
    if " " not in str(folder):
        return folder
    return Path(tempfile.gettempdir(), f"mpidata-mpis-{os.getuid()}-{zlib.crc32(os.fsencode(folder)):08x}")


def make(kind: str) -> Mpi:
    folder = _all() / kind
    stamp = folder / "made.stamp"
    digest = f"{sys.executable} {_digest()}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another pytest process may be making it
        if not stamp.exists() or stamp.read_text() != digest:
            command = ["sh", "tools/make-mpi.sh", kind, str(folder), sys.executable]
            quickly = os.environ | {"CMAKE_ARGS": "-DCMAKE_BUILD_TYPE=Debug"}  # builds in half the time
            done = subprocess.run(command, cwd=ROOT, env=quickly, capture_output=True, text=True, timeout=900)
            assert done.returncode == 0, f"no environment with {kind}: {done.stderr[-3000:]}"
            stamp.write_text(digest)
    return Mpi(kind, KINDS[kind], folder / "bin")


def write_job(folder: Path, **solvers: Any) -> None:
    job = {
        "trainers": {"ranks": 2, "program": ["python", str(_PROGRAMS / "trainers" / "drain.py")]},
        "solvers": solvers,
        "parameters": {"count": 6, "space": {"alpha": [0.0, 1.0]}},
        "fields": {"u": {"dtype": "float32", "shape": [4, 6]}},
        "buffer": {"policy": "fifo", "capacity": 100},
    }
    (folder / "job.yaml").write_text(yaml.safe_dump(job))
