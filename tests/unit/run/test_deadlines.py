"""The order of the deadlines that depend on one another, in Python and in C."""

import pytest

from mpidata.config import launching
from mpidata.native.constants import table
from mpidata.run import deadlines


def of_python() -> dict[str, float]:
    return {name[:-2]: value for name, value in vars(deadlines).items() if name.endswith("_S")}


def of_c() -> dict[str, float]:
    numbers = table()["number"]
    return {number.name[:-3]: number.number / 1000 for number in numbers if number.name.endswith("_MS")}


ALL = {**of_python(), **of_c(), "SLURM": float(launching.AFTER_CHECKPOINT_S)}


@pytest.mark.parametrize(
    "first, then, why",
    [
        ("STATUS_EVERY", "LAST_FIGURES", "the status after a goodbye is waited for"),
        ("STOP", "GRACE", "the scheduler ends a job that a trainer has left before `mpidata run` does"),
        ("MORE_ERRORS", "FAIL", "ending at once is the shorter way"),
        (
            "WHY_TRAINER_FAILED FAIL",
            "AFTER_ERROR",
            "the scheduler tells why before the rank at fault ends, which takes the job with it",
        ),
        ("WHY_TRAINER_DIED", "AFTER_ERROR", "what a dead trainer makes others report is not told before its death"),
        ("AFTER_ERROR", "AFTER_OVER", "a rank that has reported an error leaves by itself"),
        ("LOOK_EVERY AFTER_OVER", "GRACE", "ranks, on other hosts too, have ended when the launcher is ended"),
        ("FINALIZE", "AFTER_OVER", "what has done its work and hangs in MPI_Finalize ends as what has done its work"),
        ("LOOK_EVERY FINALIZE BEFORE_DEATH", "GRACE", "the same, where nothing has told that the job is over"),
        ("PMIX_SENDS", "ABORT", "MPI_Abort sends what it says before it counts as stuck"),
        ("FAILED TERM ORPHANS REAP", "GRACE", "a job that has failed is gone within the time that its ranks have"),
        ("EMPTY", "GRACE", "a launcher without ranks is waited for less than one with ranks"),
        ("LATE TERM ORPHANS REAP", "SLURM", "`mpidata run` has ended what wrote a checkpoint before Slurm ends it"),
        ("SAY_JOIN", "SPAWN", "what hangs when it is to join is named before it is given up"),
        ("SPAWN_HOPELESS", "SPAWN", "the first spawn of which nothing is heard is the last"),
    ],
)
def test_dependent_deadlines_are_in_order(first: str, then: str, why: str) -> None:
    assert sum(ALL[name] for name in first.split()) < ALL[then], why
