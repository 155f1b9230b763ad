"""What loading a job file imports."""

import subprocess
import sys
from pathlib import Path

JOB = """
trainers: {program: ["true"]}
solvers: {program: ["true"]}
parameters: {count: 8, space: {alpha: [0.01, 0.1]}}
fields: {u: {shape: [4]}}
"""


def test_loading_a_job_file_imports_no_heavy_modules(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    program = (
        "import sys; from mpidata.config import load_job; load_job(sys.argv[1]);"
        "print([name for name in ('numpy', 'scipy', 'torch', 'h5py', 'mpi4py') if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "job.yaml")], capture_output=True, text=True, timeout=60
    )
    assert (result.stdout, result.stderr) == ("[]\n", "")
