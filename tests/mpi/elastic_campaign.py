"""One random job of the campaign of dying trainers: all its choices and deaths follow from one seed.

Trainers learn from rows or a stream, with or without spares, or by parameter servers; a stream may also have
validation, scales, a budget of draws, windows and a record. One or two trainers die, at named points or in any step.
Each row is trained on once an epoch, each sample of a stream once (of a reservoir at least once). All that live have
the same weights after each step, or those of all pushes. No process is left, and the job continues without a restart.
"""

from pathlib import Path
from typing import Any

import exact_job
import served_job
import stream_job
from jobs import JobFolder

KINDS = {
    "rows": exact_job.draw,
    "spares": exact_job.draw_with_spares,
    "served": served_job.draw,
    "served spares": served_job.draw_with_spares,
    "stream": stream_job.draw,
    "stream spares": stream_job.draw_with_spares,
    "beside": stream_job.draw_beside,
    "beside spares": stream_job.draw_beside_spares,
}


def draw(seed: int) -> tuple[str, dict[str, Any]]:
    """Generate the kind of job and the job of a seed."""
    kind = sorted(KINDS)[seed % len(KINDS)]
    return kind, KINDS[kind](seed)


def build(folder: Path) -> None:
    """Do nothing: there is nothing to compile."""


def run_draw(folder: JobFolder, built: Path, seed: int, timeout: float = 200) -> str:
    """Run the job of a seed, and check it; returns a line that describes the run."""
    kind, job = draw(seed)
    if kind.startswith(("stream", "beside")):
        job = stream_job.write_job(folder, **job)
        result = folder.run(timeout=timeout)
        stream_job.check(job, result)
    elif kind.startswith("served"):
        job = served_job.write_job(folder, **job)
        result = folder.run(timeout=timeout)
        served_job.check(job, result)
    else:
        result = exact_job.run(folder, job, timeout)
        exact_job.check(job, result)
    lost, joined = (len(result.summary.get(name, [])) for name in ("lost_trainers", "joined_trainers"))
    return f"{kind}, {result.seconds:.0f} s, {lost} lost, {joined} joined"
