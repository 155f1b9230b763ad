"""One random job of the loop campaign: trainers cancel and publish, solvers read and ask, processes die; from one seed.

Programs in Python (functions and loops), C and Fortran, carried programs and programs that only write files, in groups
of one to three ranks; inference ranks, a learner, fields with lengths, records, journals. Five processes die: solvers,
carriers, inference ranks, learners, and trainers if the others continue. No cancelled simulation runs again, and each
was taken by `cancel`. Of all others, each sample is drawn once. All ranks of a group end at the same step and read the
same versions, which never decrease. Each answer matches its question bit for bit, from one call and one version.
Nothing is left.
"""

from pathlib import Path

from jobs import JobFolder
from loop_checks import check, check_lost, check_replay
from loop_deaths import Deaths
from loop_draw import Draw, draw
from loop_job import build, write_job

__all__ = ["Draw", "build", "draw", "run_draw"]


def run_draw(folder: JobFolder, built: Path, seed: int, timeout: float = 170) -> str:
    """Run the job of a seed in a folder, and check the result; returns a line that describes the run."""
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
