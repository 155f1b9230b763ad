"""The ranks of a replica get the same batches, bit for bit, and each sample goes to one replica."""

import signal

import pytest
from jobs import JobFolder
from replica_job import books, check, draw, used, write_job


def run(folder: JobFolder, job: dict[str, object]) -> None:
    known = write_job(folder, **job)  # type: ignore[arg-type]
    print(job)
    result = folder.run(timeout=100)
    check(known, result)
    ranks = known["replicas"] * known["each"]
    assert {f"rank_{rank}" for rank in range(ranks)} <= result.summary["training"].keys(), result.logs()
    assert result.summary["replicas"] == {"count": known["replicas"], "ranks": known["each"]}
    assert len(result.summary["batches"]["per_trainer"]) == known["replicas"]
    lines = books(result, known)
    sums = {str(line["sums"]) for of in lines for line in of if "sums" in line}
    assert len(sums) == 1, sums
    whole = {str(line["validation"]) for of in lines for line in of if "share" in line.get("kind", "")}
    assert len(whole) == 1


@pytest.mark.full
def test_job_resumes_with_more_replicas(folder: JobFolder) -> None:
    """What was not drawn is dealt out to all; what each rank keeps comes from the same rank of an earlier replica."""
    options = {"kill": [1, 6, signal.SIGKILL], "checkpoint": 4, "pause_s": 0.1}
    job = write_job(folder, "firo", options=options) | {"kill": 1}
    died = folder.run(timeout=100)
    assert died.status == 1 and died.run is not None, died.logs()
    result = folder.resume(died.run, "--set", "trainers.ranks=6", timeout=100)
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    drawn = [tuple(sample) for line in books(result, {**job, "replicas": 3}) for sample in used(line)]
    assert len(drawn) == len(set(drawn)) and set(drawn) <= job["samples"]
    assert len(drawn) > len(job["samples"]) - 30, len(drawn)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"raises": 3}, "Mate 1 of trainer 1 (rank 4) raised ValueError: this rank is not well (stream.py line"),
        ({"raises": 2}, "ValueError: this rank is not well (stream.py line"),
        (
            {"unlike": 1},
            "Rank 1 of replica 0 asks for validation samples after batch 0, but the first rank has continued with",
        ),
    ],
)
def test_first_cause_is_reported(folder: JobFolder, options: dict[str, int], said: str) -> None:
    write_job(folder, options=options)
    result = folder.run(timeout=100)
    assert result.status == 1 and said in result.summary["error"], (result.summary, result.logs())


def test_an_error_of_the_first_rank_is_raised_on_its_mates(folder: JobFolder) -> None:
    write_job(folder, batch_size=1000)
    result = folder.run(timeout=100)
    said = "buffer.capacity"
    assert result.status == 1 and said in result.summary["error"], (result.summary, result.logs())
    for replica in range(2):
        assert said in result.log("trainer", replica) and said in result.log("mate", replica), result.logs()


@pytest.mark.parametrize("leaves", [3, pytest.param(0, marks=pytest.mark.full)])
def test_rank_that_leaves_its_loop_stops_the_job_cleanly(folder: JobFolder, leaves: int) -> None:
    write_job(folder, count=40, options={"leaves": leaves, "pause_s": 0.02})
    result = folder.run(timeout=100)
    assert result.status == 0 and result.summary["status"] == "stopped", (result.summary, result.logs())
    assert f"trainer {leaves // 2}: " in result.summary["reason"], result.summary


def test_mates_have_the_batches_of_their_first_rank(folder: JobFolder) -> None:
    """Also with weights, statistics, each kind of validation, and losses reported by both ranks of a replica."""
    options = {"statistics": True, "validate": True, "losses": [0, 1]}
    run(folder, {"policy": "firo", "weights": True, "options": options})


def test_large_batch_may_be_modified_immediately(folder: JobFolder) -> None:
    """The first rank has sent the batch by then, although a mate is late; mates also own their batches."""
    job = write_job(folder, batch_size=2, count=3, shape=(300, 400), options={"late": 1})
    check(job, folder.run(timeout=100))


@pytest.mark.full
@pytest.mark.parametrize("policy", ["fifo", "firo", "reservoir"])
@pytest.mark.parametrize("seed", range(3))
def test_random_jobs_are_exact_on_replicas(folder: JobFolder, policy: str, seed: int) -> None:
    run(folder, draw(seed, policy))


@pytest.mark.parametrize(
    ("killed", "policy"),
    [
        (1, "fifo"),
        *(pytest.param(*case, marks=pytest.mark.full) for case in [(2, "firo"), (3, "reservoir"), (0, "fifo")]),
    ],
)
def test_death_of_a_replica_rank_ends_the_job_which_can_be_resumed(folder: JobFolder, killed: int, policy: str) -> None:
    options = {"kill": [killed, 6, signal.SIGKILL], "checkpoint": 4, "pause_s": 0.1}
    job = write_job(folder, policy, options=options) | {"kill": killed}
    died = folder.run(timeout=100)
    who = f"Mate {killed % 2} of trainer {killed // 2}" if killed % 2 else f"Trainer {killed // 2}"
    assert died.status == 1 and died.run is not None and died.summary["died"], died.logs()
    assert died.summary["error"].startswith(f"{who} (rank ") and "SIGKILL" in died.summary["error"], died.summary
    check(job, folder.resume(died.run, timeout=100))
