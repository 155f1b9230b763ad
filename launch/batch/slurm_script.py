"""The batch script of a job, for sbatch."""

from __future__ import annotations

import math
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mpidata.config import Job
from mpidata.errors import LaunchError
from mpidata.launch.batch.placement import Layout, tasks_per_node
from mpidata.launch.batch.template import read_template, render
from mpidata.run_module import module_command

__all__ = ["batch_script"]

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
        A template to use instead of that of the job file.

    Raises
    ------
    LaunchError
        The template cannot be used, or the job file requests too few nodes.
    """
    text, where = read_template(template or job.slurm.template, job.folder)
    missing = {} if job.slurm.time else {"time": "Set 'slurm.time', for example to \"12:00:00\"."}
    return render(text, _values(job, overrides), missing, where)


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
    """Write the lines of `slurm.setup` so that one that fails ends the script; commands in a sourced file may fail."""
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
            f"{job.path}: 'slurm.nodes' is {nodes}, and GPUs would be requested on each of them, but only {needed} "
            f"{'has' if needed == 1 else 'have'} trainers. Use the template heterogeneous, which requests GPUs for the "
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
    """Nodes for solvers, loaders and servers alone."""
    nodes = job.slurm.nodes
    if nodes is None:
        return {"ntasks": layout.others}
    groups = math.ceil((layout.groups + layout.later) / nodes)
    rest = math.ceil((layout.loaders + layout.loaders_later + layout.last) / nodes)
    return {"nodes": nodes, "ntasks-per-node": groups * layout.ranks_per_group + rest}


def _gpus(layout: Layout, options: Mapping[str, Any]) -> dict[str, Any]:
    """GPUs of each node that has trainers; empty if the job file requests GPUs by its own options."""
    if not layout.gpus_per_rank or any(name in options for name in _GPU_OPTIONS):
        return {}
    return {"gpus-per-node": layout.gpus_per_rank * min(layout.per_node or layout.trainers, layout.trainers)}


def _directives(options: Mapping[str, Any]) -> str:
    """Write options of sbatch, one per `#SBATCH` line."""
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
    return [str(beside)] if beside.exists() else list(module_command("mpidata"))
