"""The report that `mpidata run` makes at its end."""

from __future__ import annotations

import os
import subprocess

from mpidata.reporting.plots import MISSING, has_matplotlib
from mpidata.run.folder import RunFolder
from mpidata.run_module import module_command

__all__ = ["OFF", "report_at_end"]

OFF = "MPIDATA_REPORT"
"""Environment variable that is `false` if no report is wanted."""

_LONGEST_S = 120.0


def report_at_end(run: RunFolder) -> str:
    """Make the report of a run that has ended; returns the message for the user, "" if no report is wanted.

    Notes
    -----
    Blocks until it is made, for at most two minutes. Uses a separate process, so that errors do not affect the run.
    """
    if os.environ.get(OFF, "").lower() in ("0", "false", "no"):
        return ""
    if not has_matplotlib():
        return f"no report: {MISSING}, then `mpidata report {run.path}`"
    command = module_command("mpidata.reporting", str(run.path))
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=_LONGEST_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"no report: {error}. To make it, run `mpidata report {run.path}`"
    if done.returncode:
        why = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1].rstrip(".")
        return f"no report: {why}. To try again, run `mpidata report {run.path}`"
    return f"report {run.report}"
