"""Slurm, as a batch system."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from mpidata.config import Job
from mpidata.errors import LaunchError
from mpidata.launch.batch.allocation import Allocation
from mpidata.launch.batch.slurm_job import SlurmJob
from mpidata.launch.batch.slurm_nodes import read_allocation
from mpidata.launch.batch.slurm_script import batch_script
from mpidata.run.exits import signal_name

__all__ = ["Slurm"]

_TIMEOUT_S = 60.0
_NUMBER = re.compile(r"\d+(;\S*)?", re.ASCII)


class Slurm:
    """Implements `BatchSystem`, with sbatch, scontrol and the variables that Slurm sets."""

    def allocation(self, environ: Mapping[str, str]) -> Allocation | None:
        """Nodes of the Slurm job of this process."""
        return read_allocation(environ)

    def job(self, environ: Mapping[str, str]) -> SlurmJob | None:
        """Read the Slurm job of this process."""
        return SlurmJob.of(environ)

    def variables(
        self, environ: Mapping[str, str], allocation: Allocation | None, srun: bool, beside: bool
    ) -> dict[str, str]:
        """Variables that override defaults of Slurm which would harm a job."""
        found = {}
        if "SLURM_EXPORT_ENV" in environ:  # set by `sbatch --export=NONE`: mpirun's daemons would have no PATH
            found["SLURM_EXPORT_ENV"] = "ALL"
        if allocation is not None and allocation.job and not srun and "SLURM_NO_KILL" not in environ:
            # Otherwise, if Slurm is first to notice a lost node, it ends all daemons, and mpirun names a wrong node.
            found["SLURM_NO_KILL"] = "set"
        if beside:
            found["SLURM_OVERLAP"] = "1"  # or a step would wait for the running one to end
        return found

    def script(self, job: Job, overrides: Sequence[str], template: str | None) -> str:
        """Write a script for sbatch."""
        return batch_script(job, overrides, template)

    def submit(self, job: Job, script: str) -> tuple[str, Path]:
        """Submit the script with sbatch."""
        _refuse_arrays(script, job)
        try:
            done = subprocess.run(
                ["sbatch", "--parsable"],
                input=script.encode(errors="surrogateescape"),
                capture_output=True,
                timeout=_TIMEOUT_S,
            )
        except FileNotFoundError:
            raise LaunchError(
                "There is no sbatch on PATH. Submit from a host with Slurm's commands (a login node), or print the "
                "script with --print."
            ) from None
        except subprocess.TimeoutExpired:
            raise LaunchError(
                f"sbatch has not ended within {_TIMEOUT_S:g} s. Check with squeue whether Slurm responds and whether "
                "the job is in the queue."
            ) from None
        except OSError as error:
            raise LaunchError(f"Cannot run sbatch: {error.strerror}. See the script with --print.") from None
        output, errors = (" ".join(part.decode(errors="replace").split()) for part in (done.stdout, done.stderr))
        if done.returncode != 0:
            ended = signal_name(-done.returncode) if done.returncode < 0 else f"exit status {done.returncode}"
            said = errors.rstrip(".") or ended
            raise LaunchError(f"sbatch refused the job: {said}. See the script with --print, and the key 'slurm'.")
        found = [word for word in output.split() if _NUMBER.fullmatch(word)]
        if not found:
            raise LaunchError(
                f"sbatch succeeded, but printed {output!r}, which has no job number. Check with squeue whether the "
                "job is in the queue, and that the sbatch on PATH is Slurm's."
            )
        number = found[-1]
        folder = Path(_option(script, "chdir", "D") or os.getcwd())
        return number, folder / _output(script, number.partition(";")[0])


def _refuse_arrays(script: str, job: Job) -> None:
    """Refuse an array whose tasks would all run the same simulations, unless the script reads the task's index."""
    asked = _option(script, "array", "a") or os.environ.get("SBATCH_ARRAY_INX")
    if asked is not None and "SLURM_ARRAY_TASK_ID" not in script:
        raise LaunchError(
            f"All tasks of the array {asked} would run the same simulations. {job.path}: template (or environment "
            'variable SBATCH_ARRAY_INX). Add `--set seed="$SLURM_ARRAY_TASK_ID"` to its `mpidata run`, or submit a job '
            "for each seed: `mpidata submit job.yaml --set seed=1`."
        )


def _output(script: str, number: str) -> str:
    """Name of the output file of a script that was submitted as the job of this number."""
    name = _option(script, "job-name", "J") or "sbatch"
    return (_option(script, "output", "o") or "slurm-%j.out").replace("%j", number).replace("%x", name)


def _option(script: str, name: str, letter: str) -> str | None:
    """Value of an option in the `#SBATCH` lines of a script: the last one counts, as in sbatch."""
    found = re.findall(rf"^#SBATCH.*?\s(?:--{name}(?:=|\s+)|-{letter}\s*)(\"[^\"]*\"|\S+)", script, re.MULTILINE)
    return str(found[-1]).strip('"') if found else None
