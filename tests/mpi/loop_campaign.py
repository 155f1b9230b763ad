"""One draw of the campaign of the loop: trainers cancel and publish, solvers read and ask, processes die; of one seed.

Programs in Python (functions and loops), C and Fortran, carried ones and those that only write files, in groups of one
to three ranks; ranks that answer, a sampler on a rank of its own, fields of lengths, records, journals. Five processes
die: solvers, carriers, inference ranks, learners, and trainers where others go on. No cancelled simulation runs again,
those that are cancelled were taken by `cancel`, of all others each sample is drawn once, all ranks of a group end at
the same step and read the same versions, which never fall, each answer is that of its question, bit by bit, of one call
and one version, and nothing is left.
"""

from pathlib import Path

from jobs import JobFolder
from loop_checks import check, check_lost, check_replay
from loop_deaths import Deaths
from loop_draw import Draw, draw
from loop_job import build, write_job

__all__ = ["Draw", "build", "draw", "run_draw"]


def run_draw(folder: JobFolder, built: Path, seed: int, timeout: float = 170) -> str:
    """Run the draw of a seed in a folder, and check what came; returns a line that says what happened."""
    one = draw(seed)
    write_job(folder, built, one)
    deaths = Deaths(folder.path, one)
    deaths.start()
    try:
        result = folder.run(timeout=timeout)
    finally:
        deaths.stop()
    died = ", ".join(f"{role}/{int(way)}" for role, _, way in deaths.done)
    assert result.status == 0 and result.summary["status"] == "complete", f"{died}\n{result.logs()}"
    assert len(deaths.done) == len(one.deaths), f"only these died: {died}\n{result.logs()}"
    taken = check(one, folder.path, result)
    if one.journal:
        check_replay(one, folder, result, timeout)
    cancelled, lost = result.summary.get("cancelled", []), check_lost(one, deaths.done, result)
    return f"{result.seconds:.0f} s, {len(cancelled)} of {len(taken)} cancelled, ended {died}; {lost}"
