"""The contents of a run folder for its report; missing and incomplete parts are omitted."""

from __future__ import annotations

import contextlib
import csv
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from mpidata.errors import LaunchError
from mpidata.reporting.reading.history import History, tell
from mpidata.run.documents.documents import Lines, fault, ignored, read_document
from mpidata.run.documents.types import EVENT, JOB, MACHINE, METRICS, PROGRESS, SUMMARY
from mpidata.run.folder import RunFolder
from mpidata.run.logged_losses import read_losses

__all__ = ["RunSnapshot", "look_at"]


@dataclass
class RunSnapshot:
    """The contents of a run folder.

    Attributes
    ----------
    run : RunFolder
    status : str
        That of its summary; `not ended` if it has none.
    figures : dict
        summary.json, or its figures from progress.json.
    job : dict
        The job file.
    job_text : str
        The text of the job file.
    machine : dict
        machine.json.
    story : History
    metrics : list of dict
        The lines of metrics.jsonl.
    problems : list of str
        A sentence for each file that is ignored as a whole or in part, because its values have other types.
    names : list of str
        Of the parameters.
    parameters : ndarray, float64, shape (simulations, names)
    losses : dict
        Mean loss by simulation.
    """

    run: RunFolder
    status: str
    figures: dict[str, Any]
    job: dict[str, Any]
    job_text: str
    machine: dict[str, Any]
    story: History
    metrics: list[dict[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    parameters: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))
    losses: dict[int, float] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Name and number of the run."""
        return f"{self.run.path.parent.name}/{self.run.path.name}"


def look_at(folder: str | Path) -> RunSnapshot:
    """Read the folder of a run that has ended, is running, or was killed.

    Raises
    ------
    LaunchError
        It is not a run folder.
    """
    run = RunFolder(Path(folder).absolute())
    if not os.path.isfile(run.job):
        raise LaunchError(f"{folder} is not a run folder: it has no job.yaml. Name one such as runs/rod/1.")
    wanted = ((run.summary, SUMMARY), (run.progress, PROGRESS), (run.machine, MACHINE))
    (summary, progress, machine), problems = map(list, zip(*(read_document(*one) for one in wanted), strict=True))
    figures = summary or {**progress, **read_losses(run.events)}
    text = _text(run.job)
    job, problem = _job(run.job, text)
    events, metrics = Lines(run.events, EVENT), Lines(run.metrics, METRICS)
    story, lines = tell(events.read()), list(metrics.read())
    problems += [problem, events.problem, metrics.problem]
    names, parameters = _parameters(run.parameters, job)
    return RunSnapshot(
        run=run,
        status=str(summary.get("status", "not ended")),
        figures=figures,
        job=job,
        job_text=text,
        machine=machine,
        story=story,
        metrics=lines,
        problems=[sentence for sentence in problems if sentence],
        names=names,
        parameters=parameters,
        losses=_losses(run.losses),
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _job(path: Path, text: str) -> tuple[dict[str, Any], str]:
    """Return the job file, empty if it is ignored, and why it is ignored."""
    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):  # ValueError: a date such as 2024-13-45
        return {}, ignored(path, "it is not a YAML document")
    clause = fault(found, JOB)
    return ({}, ignored(path, clause)) if clause is not None else (found, "")


def _space(job: dict[str, Any]) -> dict[str, Any]:
    parameters = job.get("parameters")
    space = parameters.get("space") if isinstance(parameters, dict) else None
    return space if isinstance(space, dict) else {}


def _texts(job: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the values of each parameter with a list of values; of texts, the positions in the list are drawn."""
    points = {name: axis for name, axis in _space(job).items() if isinstance(axis, dict)}
    return {
        name: next((given for given in (axis.get("choices"), axis.get("values")) if given), [axis.get("value")])
        for name, axis in points.items()
    }


def _parameters(path: Path, job: dict[str, Any]) -> tuple[list[str], NDArray[np.float64]]:
    """Return the names and values of the parameters; columns after them, such as `weight` and `state`, are dropped."""
    rows: list[list[float]] = []
    texts = _texts(job)
    with (
        contextlib.suppress(OSError, StopIteration, csv.Error),
        open(path, encoding="utf-8", errors="replace", newline="") as file,
    ):
        lines = csv.reader(file)
        names = next(lines)[1 : 1 + len(_space(job))]
        for line in lines:
            with contextlib.suppress(ValueError):
                cells = zip(("", *names), line, strict=False)
                row = [float(texts[name].index(cell) if cell in texts.get(name, ()) else cell) for name, cell in cells]
                rows += [row] if len(row) == 1 + len(names) else []
        found = np.array(rows, float).reshape(len(rows), 1 + len(names))
        return names, found[np.argsort(found[:, 0], kind="stable"), 1:]
    return [], np.zeros((0, 0))


def _losses(path: Path) -> dict[int, float]:
    found = {}
    with contextlib.suppress(OSError, csv.Error), open(path, encoding="utf-8", errors="replace", newline="") as file:
        for row in csv.DictReader(file):
            with contextlib.suppress(KeyError, TypeError, ValueError):
                found[int(row["simulation"])] = float(row["mean"])
    return found
