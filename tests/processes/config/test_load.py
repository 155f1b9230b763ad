"""What loading a job file imports."""

import subprocess
import sys
from pathlib import Path

import pytest

MINIMAL = """
trainers: {program: [python, train.py]}
solvers: {program: [./heat2d]}
parameters: {count: 8, space: {alpha: [0.01, 1e-1]}}
fields: {u: {shape: [4]}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").touch()
    (tmp_path / "heat2d").touch(mode=0o755)
    return tmp_path


def test_loading_imports_nothing_heavy(folder: Path) -> None:
    (folder / "job.yaml").write_text(MINIMAL)
    program = (
        "import sys; from mpidata.config import load_job; load_job(sys.argv[1]);"
        "print([name for name in ('numpy', 'scipy', 'torch', 'h5py', 'mpi4py') if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, str(folder / "job.yaml")], capture_output=True, text=True, timeout=60
    )
    assert (result.stdout, result.stderr) == ("[]\n", "")
