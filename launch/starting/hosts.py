"""Continuing without a lost host: which hosts still answer, and how the job fits on them."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import IO

from mpidata.errors import LaunchError
from mpidata.launch.batch.allocation import Allocation
from mpidata.launch.batch.placement import Layout, place
from mpidata.launch.batch.system import batch_variables
from mpidata.launch.starting.launcher import Launcher

__all__ = ["ANSWER", "fewer", "on_hosts_left", "silent", "working"]

_ANSWER_S, _END_S = 15.0, 5.0
_WORD = "answer"
# It waits for input before it ends. If it ended before the daemon that started it (PRRTE 3.0) has noted its process
# id, mpirun would never learn of its end.
ANSWER = ("timeout", "60", "sh", "-c", f"echo {_WORD}; read line")
_SESSION = ("PRTE_MCA_prte_local_tmpdir_base", "OMPI_MCA_orte_local_tmpdir_base")


def on_hosts_left(launcher: Launcher, environ: Mapping[str, str]) -> tuple[Launcher, list[str]]:
    """Leave out those hosts of a job that do not answer.

    Parameters
    ----------
    launcher : Launcher
        Of a start that has failed.
    environ : mapping of str to str
        Environment of the programs that ask the hosts.

    Returns
    -------
    launcher : Launcher
        For the next start; the same one if all hosts answer.
    sentences : list of str
        What has changed.

    Raises
    ------
    LaunchError
        The job does not fit on the hosts that are left, not even with one group and one loader.

    Notes
    -----
    Blocks for 15 s if a host does not answer.
    """
    allocation = launcher.allocation
    if allocation is None or launcher.is_local:
        return launcher, []
    names = [node.name for node in allocation.nodes]
    lost = silent({name: launcher.ask(name, ANSWER) for name in names}, environ)
    if not lost:
        return launcher, []
    left = allocation.without(lost)
    job, whole = launcher.job, Layout.of(launcher.job)
    sentences = [f"Without {', '.join(sorted(lost))}, which cannot be reached.", *(lost[name] for name in sorted(lost))]
    try:
        less = fewer(whole, left)
    except LaunchError as error:
        raise LaunchError(f"{' '.join(sentences)} {error}") from None
    groups, loaders = working(less)
    for what, room, of in (("groups", groups, job.solvers.groups), ("loaders", loaders, working(whole)[1])):
        if room != of:
            sentences.append(f"There is room for {room} of {of} {what}.")
    for what, room, of in (("groups", less.spares, whole.spares), ("loaders", less.loader_spares, whole.loader_spares)):
        if room != of:
            sentences.append(f"There is room for {room} of {of} spare {what}.")
    solvers = {"groups": groups} | ({"spares": less.spares} if less.spares != whole.spares else {})
    job = job.model_copy(update={"solvers": job.solvers.model_copy(update=solvers)})
    if job.loaders is not None:
        ranks = {"ranks": loaders} | (
            {"spares": less.loader_spares} if less.loader_spares != whole.loader_spares else {}
        )
        job = job.model_copy(update={"loaders": job.loaders.model_copy(update=ranks)})
    placement = place(Layout.of(job), left)
    return dataclasses.replace(launcher, job=job, allocation=left, placement=placement), sentences


def working(layout: Layout) -> tuple[int, int]:
    """Count the groups and the loaders that are not spares."""
    groups = layout.groups + layout.later - layout.spares
    return groups, layout.loaders + layout.loaders_later - layout.loader_spares


def fewer(layout: Layout, allocation: Allocation) -> Layout:
    """Leave out groups and loaders until the rest fits on an allocation.

    Spares are left out first, then one of the groups or of the loaders, whichever have more ranks.

    Raises
    ------
    LaunchError
        Not even one of each fits.
    """
    while True:
        try:
            place(layout, allocation)
        except LaunchError as error:
            less = _one_less(layout)
            if less is None:
                raise error
            layout = less
        else:
            return layout


def _one_less(layout: Layout) -> Layout | None:
    groups, loaders = working(layout)
    if layout.spares and layout.spares * layout.ranks_per_group >= layout.loader_spares:
        return _less(layout, "groups", "spares")
    if layout.loader_spares:
        return _less(layout, "loaders", "loader_spares")
    if groups > 1 and (groups * layout.ranks_per_group >= loaders or loaders <= 1):
        return _less(layout, "groups" if layout.groups else "later")
    if loaders > 1:
        return _less(layout, "loaders" if layout.loaders else "loaders_later")
    return None


def _less(layout: Layout, *kinds: str) -> Layout:
    return dataclasses.replace(layout, **{kind: getattr(layout, kind) - 1 for kind in kinds})


def silent(commands: Mapping[str, Sequence[str]], environ: Mapping[str, str]) -> dict[str, str]:
    """Ask all hosts at the same time for a sign of life.

    Parameters
    ----------
    commands : mapping of str to sequence of str
        For each host, the command that runs `ANSWER` there and passes its input and output on.
    environ : mapping of str to str
        Environment of the commands.

    Returns
    -------
    dict of str to str
        The hosts that do not answer within 15 s, each with a sentence.
    """
    with tempfile.TemporaryDirectory(prefix="mpidata-ask-", ignore_cleanup_errors=True) as folder:
        own = {name: folder for name in _SESSION}  # killed commands leave their files there
        own |= batch_variables(environ, beside=True)  # or they would wait for the rest of the job to end
        with contextlib.ExitStack() as stack:
            said = {name: stack.enter_context(tempfile.TemporaryFile(dir=folder)) for name in commands}
            running = {name: _start(command, {**environ, **own}, said[name]) for name, command in commands.items()}
            return {
                name: _why(name, status, said[name]) for name, status in _wait(running, said).items() if status != 0
            }


def _start(command: Sequence[str], environ: Mapping[str, str], said: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command, env=environ, stdin=subprocess.PIPE, stdout=said, stderr=said, start_new_session=True
    )


def _wait(running: Mapping[str, subprocess.Popen[bytes]], said: Mapping[str, IO[bytes]]) -> dict[str, int | None]:
    """Wait 15 s for the answers, then end all; returns the status of each, 0 if it has answered."""
    deadline = time.monotonic() + _ANSWER_S
    found: dict[str, int | None] = {}
    while len(found) < len(running) and time.monotonic() < deadline:
        for name in running.keys() - found.keys():
            status = running[name].poll()
            if status is not None or _WORD in _lines(said[name]):
                found[name] = status or 0
        time.sleep(0.05)
    for process in running.values():
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError), process.stdin as line:
            line.write(b"\n")
    deadline = time.monotonic() + _END_S
    for name, process in running.items():
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, deadline - time.monotonic()) if name in found else 0.0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return {name: found.get(name) for name in running}


def _lines(said: IO[bytes]) -> list[str]:
    text = os.pread(said.fileno(), 1 << 16, 0).decode(errors="replace")  # the writer shares the position in the file
    return [line.strip() for line in text.splitlines() if line.strip(" \t-")]


def _why(name: str, status: int | None, said: IO[bytes]) -> str:
    if status is None:
        return f"{name} did not answer within {_ANSWER_S:g} s."
    what = " ".join(_lines(said))[:500] or "no output"
    return f"Starting a program on {name} failed with status {status}: {what}."
