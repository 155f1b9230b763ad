"""Replicas of several ranks: the ranks of one get the same batches to the bit, and each sample goes to one replica."""

import signal

import pytest
from jobs import JobFolder
from replica_job import books, check, draw, write_job


def run(folder: JobFolder, job: dict[str, object]) -> None:
    known = write_job(folder, **job)  # type: ignore[arg-type]
    print(job)
    result = folder.run(timeout=100)
    check(known, result)
    ranks = known["replicas"] * known["each"]
    assert {f"rank_{rank}" for rank in range(ranks)} <= result.summary["training"].keys(), result.logs()
    lines = books(result, known)
    sums = {str(line["sums"]) for of in lines for line in of if "sums" in line}
    assert len(sums) == 1, sums
    whole = {str(line["validation"]) for of in lines for line in of if "share" in line.get("kind", "")}
    assert len(whole) == 1


def test_mates_have_the_batches_of_their_first_rank(folder: JobFolder) -> None:
    """With weights, statistics, validation of each kind, and losses told by both ranks of a replica."""
    options = {"statistics": True, "validate": True, "losses": [0, 1]}
    run(folder, {"policy": "firo", "weights": True, "options": options})


@pytest.mark.full
@pytest.mark.parametrize("policy", ["fifo", "firo", "reservoir"])
@pytest.mark.parametrize("seed", range(3))
def test_any_job(folder: JobFolder, policy: str, seed: int) -> None:
    run(folder, draw(seed, policy))


@pytest.mark.parametrize(
    ("killed", "policy"),
    [(1, "fifo"), *(pytest.param(*case, marks=pytest.mark.full) for case in [(2, "firo"), (3, "reservoir"), (0, "fifo")])],
)
def test_a_death_is_that_of_the_replica_and_the_job_resumes(folder: JobFolder, killed: int, policy: str) -> None:
    options = {"kill": [killed, 6, signal.SIGKILL], "checkpoint": 4, "pause_s": 0.1}
    job = write_job(folder, policy, options=options) | {"kill": killed}
    died = folder.run(timeout=100)
    who = f"Mate {killed % 2} of trainer {killed // 2}" if killed % 2 else f"Trainer {killed // 2}"
    assert died.status == 1 and died.run is not None and died.summary["died"], died.logs()
    assert died.summary["error"].startswith(f"{who} (rank ") and "SIGKILL" in died.summary["error"], died.summary
    check(job, folder.resume(died.run, timeout=100))
