"""One draw of the campaign of trainers that die: a job whose every choice, and whose deaths, follow from one seed.

Trainers learn from rows or from a stream, with and without spares, the latter also with validation, scales, a budget of
draws, windows and a record beside, or by parameter servers; one or two of them die, at named points or in any step.
Each row is trained once an epoch, each sample of a stream once (of a reservoir at least once), all that live have the
same weights after each step, or those of all pushes, no process is left, and the job goes on without a restart.
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
    """Choose the kind of job, and the job."""
    kind = sorted(KINDS)[seed % len(KINDS)]
    return kind, KINDS[kind](seed)


def build(folder: Path) -> None:
    """Nothing is to be compiled."""


def run_draw(folder: JobFolder, built: Path, seed: int, timeout: float = 200) -> str:
    """Run a job that a seed has chosen, and check it; returns what happened."""
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
