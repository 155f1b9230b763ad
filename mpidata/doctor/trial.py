"""Small jobs that test a new installation: solvers in Python and in C, and a trainer."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from mpidata.doctor.finding import Finding
from mpidata.native.build_flags import build_facts, flags
from mpidata.run.folder import RunFolder

__all__ = ["try_jobs"]

_JOB_S = 25.0
_COMPILER_S = 20.0
_ENDS_S = 10.0
_SIMULATIONS, _STEPS = 4, 5

# Element (i, j) of a step is 100 alpha + 10 step + i + j / 8, which float64 holds exactly.
_JOB = f"""
trainers: {{program: [python, train.py]}}
parameters: {{count: {_SIMULATIONS}, space: {{alpha: [0.0, 1.0]}}}}
fields: {{u: {{dtype: float64, shape: [3, 8]}}}}
buffer: {{policy: fifo, capacity: 4}}
"""
_TRAINER = """
import mpidata, torch

element = torch.arange(3.0, dtype=torch.float64)[:, None] + torch.arange(8.0, dtype=torch.float64) / 8
for batch in mpidata.MPIStreamDataset(batch_size=1):
    expected = 100 * batch["parameters"][:, :1, None] + 10 * batch["step"][:, None, None] + element
    if not torch.equal(batch["u"], expected):
        raise SystemExit(f"wrong values in simulation {batch['simulation']}, step {batch['step']}")
"""
_PYTHON = f"""
import numpy as np

def simulate(alpha):
    for step in range({_STEPS}):
        yield step, {{"u": 100 * alpha + 10 * step + np.arange(3.0)[:, None] + np.arange(8.0) / 8}}
"""
_C = f"""
#include <mpi.h>
#include <mpidata.h>

int main(int argc, char **argv) {{
    MPI_Comm group;
    MPI_Init(&argc, &argv);
    if (mpidata_init(MPI_COMM_WORLD, &group)) return 1;
    int64_t simulation;
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS) {{
        double alpha, u[3][8];
        if (mpidata_param("alpha", &alpha)) return 1;
        for (int step = 0; step < {_STEPS}; step++) {{
            for (int i = 0; i < 3; i++)
                for (int j = 0; j < 8; j++) u[i][j] = 100 * alpha + 10 * step + i + j / 8.0;
            if (mpidata_put("u", u, MPIDATA_FLOAT64, 2, (const int64_t[]){{3, 8}}) || mpidata_step(step)) return 1;
        }}
    }}
    return mpidata_finalize() || MPI_Finalize();
}}
"""


def try_jobs() -> list[Finding]:
    """Run a job with solvers in Python and one with solvers in C, in a temporary folder.

    Returns
    -------
    list of Finding
        One for each: `failed` if a sample was lost or wrong.

    Notes
    -----
    Takes some seconds, at most a minute and a half. The folder is kept only if a job has failed. Must not be called in
    a job.
    """
    folder = Path(tempfile.mkdtemp(prefix="mpidata-doctor-"))
    for name, text in {"job.yaml": _JOB, "train.py": _TRAINER, "sim.py": _PYTHON, "solver.c": _C}.items():
        (folder / name).write_text(text, "utf-8")
    found = [_try("job in Python", folder, "solvers={groups: 2, function: 'sim:simulate'}"), _try_c(folder)]
    if all(finding.state == "ok" for finding in found):
        shutil.rmtree(folder)
    return found


def _try_c(folder: Path) -> Finding:
    command = [build_facts()["mpicc"], "solver.c", "-o", "solver", *flags("cflags"), *flags("libs")]
    status, said = _run(command, folder, _COMPILER_S)
    if status == 0:
        return _try("job in C", folder, "solvers={groups: 2, program: [./solver]}")
    fix = f"Solvers in C are built this way, which needs this MPI's mpicc and a C compiler: {_cause(said)}"
    return Finding("job in C", "failed", f"does not build: {shlex.join(command)}", fix)


def _try(check: str, folder: Path, solvers: str) -> Finding:
    name, started = check.split()[-1].lower(), time.monotonic()
    command = [sys.executable, "-m", "mpidata", "run", "job.yaml", "--set", solvers, "--set", f"name={name}"]
    status, said = _run(command, folder, _JOB_S)
    seconds, wanted = time.monotonic() - started, _SIMULATIONS * _STEPS
    try:
        received = json.loads(RunFolder(folder / "runs" / name / "1").summary.read_text("utf-8"))["samples"]["received"]
    except (OSError, ValueError, KeyError):
        received = 0
    if status == 0 and received == wanted:
        return Finding(check, "ok", f"{wanted} samples, all correct, in {seconds:.1f} s")
    why = "it does not end" if status is None else _cause(said)
    fix = f"The files of the job are in {folder}."
    return Finding(check, "failed", f"{received} of {wanted} samples: {why}", fix)


def _run(command: Sequence[str], folder: Path, timeout_s: float) -> tuple[int | None, str]:
    """Return the exit status of a program, None if it exceeded the time limit, and its output."""
    with subprocess.Popen(
        command,
        cwd=folder,
        env=os.environ | {"MPIDATA_REPORT": "false"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        for ends in (None, signal.SIGTERM, signal.SIGKILL):  # `mpidata run` ends its ranks by itself
            if ends is not None:
                os.killpg(process.pid, ends)
            try:
                said, _ = process.communicate(timeout=timeout_s if ends is None else _ENDS_S)
                return process.returncode if ends is None else None, said.decode(errors="replace")
            except subprocess.TimeoutExpired:
                continue
    return None, ""


def _cause(said: str) -> str:
    """Return mpidata's first sentence, else the last line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return next((line for line in lines if line.startswith("mpidata: ")), lines[-1] if lines else "no output")
