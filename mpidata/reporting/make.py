"""Makes the report of a run, or of several runs side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from mpidata.errors import MpidataError
from mpidata.reporting import tables
from mpidata.reporting.advice.run import advise_run
from mpidata.reporting.curves import draw_curves
from mpidata.reporting.output import write_output
from mpidata.reporting.page import folded, heading, page, paragraph, section, table
from mpidata.reporting.parameters import draw_parameters
from mpidata.reporting.pictures import embed_pictures
from mpidata.reporting.reading.run_snapshot import RunSnapshot, look_at
from mpidata.reporting.timeline import MOST_BARS, draw_timeline

__all__ = ["make_report"]

_Of = TypeVar("_Of")


def make_report(folders: Sequence[str | Path], output: str | Path | None = None) -> Path:
    """Write the report of a run, or of several runs side by side, as one HTML file.

    Parameters
    ----------
    folders : sequence of str or Path
        The run folders; of runs that have ended, are running, or were killed.
    output : str or Path, optional
        The file, a device or a FIFO. The default is `report.html` in the run folder, or for several `compared.html` in
        the last run folder.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    MpidataError
        A folder is not a run folder, matplotlib is missing, or the file cannot be written.
    """
    looks = [look_at(folder) for folder in folders]
    run = looks[-1].run
    path = Path(output) if output is not None else run.report if len(looks) == 1 else run.path / "compared.html"
    text = _one(looks[0]) if len(looks) == 1 else _beside(looks)
    try:
        write_output(path, text)
    except OSError as error:
        raise MpidataError(f"{path}: cannot write the report: {error.strerror}. Name another file with -o.") from None
    return path


def _one(look: RunSnapshot) -> str:
    parts = [
        heading(f"{look.title}: {look.status}"),
        _error(look),
        _problems(look),
        section("Settings", table(tables.asked(look))),
        section("Results", table(tables.came_out(look))),
        section("Bottleneck", _advice(look)),
        *_plots(look),
        section("Failures", table(tables.lost(look), ("when", "what", "where", "why"))),
        section("Machine", table(tables.machine(look))),
        section("Job file", folded("job.yaml, with all defaults", look.job_text)),
    ]
    return page(f"{look.title}: {look.status}", filter(None, parts))


def _plots(look: RunSnapshot) -> list[str]:
    many = len(look.story.bars) > MOST_BARS
    bars = (
        "Each bar is a simulation, and white gaps are waiting for the next one. The shaded end of a bar is the total "
    )
    bars += "time for which it waited for room in the buffers."
    legend = "How busy each group was." if many else bars
    return [
        section("Over time", _drawn(draw_curves, look)),
        section("Timeline", _drawn(draw_timeline, look.story), paragraph(legend, "muted")) if look.story.bars else "",
        section("Parameters", _drawn(draw_parameters, look)),
        section("Pictures", embed_pictures(look.run)),
    ]


def _drawn(draw: Callable[[_Of], str], of: _Of) -> str:
    """Return a plot, or a sentence if it cannot be drawn: the rest of the report is still of use."""
    try:
        return draw(of)
    except MpidataError:
        raise
    except Exception as error:  # matplotlib has no common error for values that it cannot draw
        return paragraph(f"This plot was left out: drawing it failed with {type(error).__name__}: {error}.", "error")


def _beside(looks: Sequence[RunSnapshot]) -> str:
    titles = ["", *(look.title for look in looks)]
    parts = [heading(" and ".join(look.title for look in looks)), *map(_problems, looks)]
    parts.append(section("Settings", table(_joined([tables.asked(look) for look in looks]), titles)))
    parts.append(section("Results", table(_joined([tables.came_out(look) for look in looks]), titles)))
    columns = [section(f"{look.title}: {look.status}", *_plots(look)) for look in looks]
    parts.append(f'<div class="beside">{"".join(columns)}</div>')
    parts.append(section("Machines", table(_joined([tables.machine(look) for look in looks]), titles)))
    return page(" and ".join(look.title for look in looks), filter(None, parts))


def _joined(columns: Sequence[tables.Rows]) -> list[list[str]]:
    names = dict.fromkeys(name for rows in columns for name, _ in rows)
    return [[name, *(dict(rows).get(name, "") for rows in columns)] for name in names]


def _advice(look: RunSnapshot) -> str:
    """Return the sentences of `mpidata advise`, for a job with solvers or loaders."""
    if not (look.job.get("solvers") or look.job.get("loaders")):
        return ""
    first, *rest = advise_run(look).sentences
    return f'<div class="advice">{paragraph(first, "first")}{"".join(map(paragraph, rest))}</div>'


def _problems(look: RunSnapshot) -> str:
    return "\n".join(paragraph(problem, "error") for problem in look.problems)


def _error(look: RunSnapshot) -> str:
    error = look.figures.get("error")
    return paragraph(str(error), "error") if error else ""
