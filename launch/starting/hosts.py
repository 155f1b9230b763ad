"""Going on without a host that is lost: which ones still answer, and how the job fits on them."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence

from mpidata.errors import LaunchError
from mpidata.launch.batch.allocation import Allocation
from mpidata.launch.batch.placement import Layout, place
from mpidata.launch.batch.system import batch_variables
from mpidata.launch.starting.launcher import Launcher

__all__ = ["answering", "fewer", "on_hosts_left"]

_ANSWER_S = 15.0
_SESSION = ("PRTE_MCA_prte_local_tmpdir_base", "OMPI_MCA_orte_local_tmpdir_base")


def on_hosts_left(launcher: Launcher, environ: Mapping[str, str]) -> tuple[Launcher, list[str]]:
    """Leave out the hosts of a job that do not answer.

    Parameters
    ----------
    launcher : Launcher
        Of a start that has failed.
    environ : mapping of str to str
        For the programs that ask the hosts.

    Returns
    -------
    launcher : Launcher
        For the next start; the same one where all hosts answer.
    sentences : list of str
        What has changed.

    Raises
    ------
    LaunchError
        The job does not fit on the hosts that are left, not even with one group and one loader.

    Notes
    -----
    Blocks, 15 s where one does not answer.
    """
    allocation = launcher.allocation
    if allocation is None or launcher.is_local:
        return launcher, []
    names = [node.name for node in allocation.nodes]
    lost = set(names) - answering({name: launcher.ask(name) for name in names}, environ)
    if not lost:
        return launcher, []
    left = allocation.without(lost)
    groups, loaders = fewer(Layout.of(launcher.job), left)
    sentences = [f"Without {', '.join(sorted(lost))}, which cannot be reached."]
    job = launcher.job
    if groups != job.solvers.groups:
        sentences.append(f"There is room for {groups} of {job.solvers.groups} groups.")
        job = job.model_copy(update={"solvers": job.solvers.model_copy(update={"groups": groups})})
    if job.loaders is not None and loaders != job.loaders.ranks:
        sentences.append(f"There is room for {loaders} of {job.loaders.ranks} loaders.")
        job = job.model_copy(update={"loaders": job.loaders.model_copy(update={"ranks": loaders})})
    placement = place(Layout.of(job), left)
    return dataclasses.replace(launcher, job=job, allocation=left, placement=placement), sentences


def fewer(layout: Layout, allocation: Allocation) -> tuple[int, int]:
    """Say how many groups and loaders, spares not counted, fit on an allocation: all, or as many as there is room for.

    Whichever has more ranks gives one up first.

    Raises
    ------
    LaunchError
        Not even one of each.
    """
    groups = layout.groups + layout.later - layout.spares
    loaders = layout.loaders + layout.loaders_later - layout.loader_spares
    error: LaunchError | None = None
    while True:
        try:
            place(layout, allocation)
        except LaunchError as found:
            error = found
        else:
            return groups, loaders
        if groups > 1 and (groups * layout.ranks_per_group >= loaders or loaders <= 1):
            groups, layout = groups - 1, _less(layout, "groups" if layout.groups else "later")
        elif loaders > 1:
            loaders, layout = loaders - 1, _less(layout, "loaders" if layout.loaders else "loaders_later")
        else:
            raise error


def _less(layout: Layout, kind: str) -> Layout:
    return dataclasses.replace(layout, **{kind: getattr(layout, kind) - 1})


def answering(commands: Mapping[str, Sequence[str]], environ: Mapping[str, str]) -> set[str]:
    """Ask hosts for a sign of life, all at once.

    Parameters
    ----------
    commands : mapping of str to sequence of str
        Of each host, what runs a program there, and ends with status 0 if that ran.
    environ : mapping of str to str
        For the commands.

    Returns
    -------
    set of str
        Those that answer within 15 s.
    """
    with tempfile.TemporaryDirectory(prefix="mpidata-ask-", ignore_cleanup_errors=True) as folder:
        own = {name: folder for name in _SESSION}  # what is killed leaves its files there
        own |= batch_variables(environ, beside=True)  # or they would wait for the end of what is left of the job
        running = {name: _start(command, {**environ, **own}) for name, command in commands.items()}
        _wait(running.values())
    return {name for name, process in running.items() if process.returncode == 0}


def _start(command: Sequence[str], environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    silent = subprocess.DEVNULL
    return subprocess.Popen(command, env=environ, stdin=silent, stdout=silent, stderr=silent, start_new_session=True)


def _wait(running: Collection[subprocess.Popen[bytes]]) -> None:
    deadline = time.monotonic() + _ANSWER_S
    while any(process.poll() is None for process in running) and time.monotonic() < deadline:
        time.sleep(0.05)
    for process in running:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
