"""`mpidata submit JOB`: a batch script of the job, for Slurm."""

from __future__ import annotations

import math
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mpidata.config import Job, load_job
from mpidata.errors import LaunchError
from mpidata.launch.batch.placement import Layout, tasks_per_node
from mpidata.launch.batch.template import read_template, render

__all__ = ["batch_script", "submit"]

_TIMEOUT_S = 60.0
_GPU_OPTIONS = ("gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket", "gres")


def batch_script(job: Job, overrides: Sequence[str] = (), template: str | None = None) -> str:
    """Write the batch script of a job.

    Parameters
    ----------
    job : Job
        With `slurm`.
    overrides : sequence of str
        Keys that the script's `mpidata run` sets, `a.b=value`.
    template : str, optional
        A template in place of that of the job file.

    Raises
    ------
    LaunchError
        The template cannot be used, or the nodes that the job file asks for are too few.
    """
    text, where = read_template(template or job.slurm.template, job.folder)
    missing = {} if job.slurm.time else {"time": "Set 'slurm.time', \"12:00:00\" say."}
    return render(text, _values(job, overrides), missing, where)


def submit(path: str, overrides: Sequence[str], template: str | None = None) -> tuple[str, Job, Path]:
    """Give a job to Slurm.

    Parameters
    ----------
    path : str
        The job file.
    overrides : sequence of str
        Keys to set, `a.b=value`.
    template : str, optional
        A template in place of that of the job file.

    Returns
    -------
    number : str
        Its number in Slurm; where it told, `;` and the cluster's name behind it.
    job : Job
        What was submitted.
    output : Path
        Where the script's output goes.

    Raises
    ------
    MpidataError
        The job file or the template is bad, or Slurm refuses the job.
    """
    job = load_job(path, overrides)
    script = batch_script(job, overrides, template)
    _check_writable(job)
    _refuse_arrays(script, job)
    try:
        done = subprocess.run(
            ["sbatch", "--parsable"], input=script, capture_output=True, text=True, timeout=_TIMEOUT_S
        )
    except FileNotFoundError:
        raise LaunchError(
            "There is no sbatch on PATH. Submit where Slurm's commands are (a login node), or print the script with "
            "--print."
        ) from None
    except (OSError, subprocess.SubprocessError) as error:
        raise LaunchError(f"Cannot run sbatch: {error}. See the script with --print.") from None
    if done.returncode != 0:
        said = " ".join(done.stderr.split()) or f"exit status {done.returncode}"
        raise LaunchError(f"sbatch refused the job: {said}. See the script with --print, and the key 'slurm'.")
    number = done.stdout.strip()
    folder = Path(_option(script, "chdir", "D") or os.getcwd())
    return number, job, folder / _output(script, number.partition(";")[0])


def _refuse_arrays(script: str, job: Job) -> None:
    """Refuse an array whose tasks would all run the same simulations; a script that looks at the index may have one."""
    asked = _option(script, "array", "a") or os.environ.get("SBATCH_ARRAY_INX")
    if asked is not None and "SLURM_ARRAY_TASK_ID" not in script:
        raise LaunchError(
            f"All tasks of the array {asked} would run the same simulations. {job.path}: template (or environment "
            'variable SBATCH_ARRAY_INX). Add `--set seed="$SLURM_ARRAY_TASK_ID"` to its `mpidata run`, or submit a job '
            "for each seed: `mpidata submit job.yaml --set seed=1`."
        )


def _output(script: str, number: str) -> str:
    """Name of the output of a script that has become the job of this number."""
    name = _option(script, "job-name", "J") or "sbatch"
    return (_option(script, "output", "o") or "slurm-%j.out").replace("%j", number).replace("%x", name)


def _option(script: str, name: str, letter: str) -> str | None:
    """Value that the `#SBATCH` lines of a script give to an option: the last one counts, as it does for sbatch."""
    found = re.findall(rf"^#SBATCH.*?\s(?:--{name}(?:=|\s+)|-{letter}\s*)(\"[^\"]*\"|\S+)", script, re.MULTILINE)
    return str(found[-1]).strip('"') if found else None


def _check_writable(job: Job) -> None:
    """See that the run folder and the script's output can be written, before the job has waited in the queue."""
    output = Path(os.path.abspath(job.folder / job.output)) / job.name
    for folder, fix in ((output, "key 'output'. Name a folder that can be written"), (job.folder, "key 'folder'")):
        there = next(path for path in (folder, *folder.parents) if path.exists())
        try:
            with tempfile.TemporaryFile(dir=there):
                pass
        except OSError as error:
            raise LaunchError(
                f"Cannot write into {there}: {error.strerror}. The job would write {folder}/. {job.path}: {fix}."
            ) from None


def _values(job: Job, overrides: Sequence[str]) -> dict[str, str]:
    slurm, layout = job.slurm, Layout.of(job)
    settings = [word for override in overrides for word in ("--set", override)]
    values = {
        "name": _directive_value(job.name),
        "folder": _directive_value(str(job.folder)),
        "run": shlex.join([*_mpidata(), "run", str(job.path), *settings]),
        "setup": _setup(slurm.setup),
        "signal_s": str(slurm.signal_before(job.saving.within_s)),
        "time_limit": _directives({} if slurm.time is None else {"time": slurm.time}),
        "resources": _directives(_resources(job, layout)),
        "options": _directives(slurm.options),
        "trainer_resources": _directives(_trainer_resources(job, layout)),
        "trainer_options": _directives({**slurm.options, **slurm.trainer_options}),
        "solver_resources": _directives(_solver_resources(job, layout)),
        "solver_options": _directives({**slurm.options, **slurm.solver_options}),
        "ranks": str(job.world_size),
        "cpus": str(layout.cpus),
    }
    if slurm.time is not None:
        values["time"] = slurm.time
    return {**values, **{name: _text(value) for name, value in slurm.values.items()}}


def _setup(lines: Sequence[str]) -> str:
    """Write the lines of `slurm.setup` so that one that fails ends the script; what a file that they read does may."""
    if not lines:
        return ""
    said = "mpidata: this line of slurm.setup failed: $BASH_COMMAND. Nothing was started. Correct it."
    guard = f"""trap '[ ${{#BASH_SOURCE[@]}} -gt 1 ] || {{ echo "{said}" >&2; exit 1; }}' ERR"""
    return "\n".join([guard, *lines, "trap - ERR"])


def _resources(job: Job, layout: Layout) -> dict[str, Any]:
    """Nodes of one kind for all ranks."""
    nodes, gpus = job.slurm.nodes, _gpus(layout, job.slurm.options)
    needed = math.ceil(layout.trainers / (layout.per_node or layout.trainers))
    if nodes is None and (layout.per_node is not None or gpus):
        nodes = needed
    elif gpus and nodes is not None and nodes > needed:
        raise LaunchError(
            f"{job.path}: 'slurm.nodes' is {nodes}, and each of them would be asked for GPUs, but only {needed} "
            f"{'has' if needed == 1 else 'have'} trainers. Use the template heterogeneous, which asks for GPUs for the "
            "trainers only, or name the GPUs yourself in 'slurm.options' (gpus-per-node, gres)."
        )
    if nodes is None:
        return {"ntasks": layout.cpus}
    return {"nodes": nodes, "ntasks-per-node": tasks_per_node(layout, nodes), **gpus}


def _trainer_resources(job: Job, layout: Layout) -> dict[str, Any]:
    """Nodes for trainers alone."""
    per_node = min(layout.per_node or layout.trainers, layout.trainers)
    nodes = math.ceil(layout.trainers / per_node)
    gpus = _gpus(layout, {**job.slurm.options, **job.slurm.trainer_options})
    return {"nodes": nodes, "ntasks-per-node": 2 * per_node, **gpus}


def _solver_resources(job: Job, layout: Layout) -> dict[str, Any]:
    """Nodes for solvers alone."""
    if job.slurm.nodes is None:
        return {"ntasks": layout.solvers}
    groups = math.ceil((layout.groups + layout.later) / job.slurm.nodes)
    return {"nodes": job.slurm.nodes, "ntasks-per-node": groups * layout.ranks_per_group}


def _gpus(layout: Layout, options: Mapping[str, Any]) -> dict[str, Any]:
    """GPUs of each node that has trainers; none where the job file asks for them in its own way."""
    if not layout.gpus_per_rank or any(name in options for name in _GPU_OPTIONS):
        return {}
    return {"gpus-per-node": layout.gpus_per_rank * min(layout.per_node or layout.trainers, layout.trainers)}


def _directives(options: Mapping[str, Any]) -> str:
    """Write options of sbatch, one `#SBATCH` line each."""
    lines = []
    for name, value in options.items():
        if value is not False:
            lines.append(f"#SBATCH --{name}" + ("" if value is True else f"={_directive_value(_text(value))}"))
    return "\n".join(lines)


def _directive_value(text: str) -> str:
    """Quote a value for a line that sbatch reads, not a shell."""
    return text if all(c.isalnum() or c in "/._-:=,+%@[]*&|()" for c in text) else '"' + text.replace('"', '\\"') + '"'


def _text(value: Any) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


def _mpidata() -> list[str]:
    """Start of the command, such that the script needs no activated environment."""
    beside = Path(os.path.dirname(sys.executable)) / "mpidata"
    return [str(beside)] if beside.exists() else [sys.executable, "-c", "from mpidata.cli import main; main()"]
