"""A job's report of how its time was spent matches what its programs measure, and gives advice."""

import re

import pytest
from jobs import JobFolder, Result, python, read_lines
from slow_jobs import write_slow_job

from mpidata.reporting.advice.advice import Advice, advise
from mpidata.reporting.advice.measurements import measure
from mpidata.reporting.reading.run_snapshot import look_at


def last(text: str) -> float:
    return float(re.findall(r"[0-9.]+", text)[-1])


def test_reported_times_match_the_measurements_of_the_programs(folder: JobFolder) -> None:
    solver = python("solvers/timing/measures_computing.py")
    folder.job(
        trainers={"program": python("trainers/timing/measures_waiting.py")},
        solvers={"groups": 3, "program": solver, "in_flight": 1},
        parameters={"count": 24, "space": {"alpha": [0.0, 1.0]}},
        fields={"u": {"dtype": "float32", "shape": [128, 128]}},
        buffer={"policy": "fifo", "capacity": 8},
    )
    result = folder.run(timeout=100)
    assert result.status == 0 and result.run is not None, result.logs()
    lines = read_lines(result.run / "metrics.jsonl")
    seconds = lines[-1]["seconds"]
    assert lines[-1]["received"] == [480] and lines[-1]["drawn"] == [120] and lines[-1]["groups"]["steps"] == 480
    assert abs(lines[-1]["waited_s"][0] - last(result.log("trainer"))) < 0.05 * seconds
    assert all(of > 0 for of in lines[-1]["cpu_s"]["trainers"])
    memory = lines[-1]["memory_mb"]
    assert 20 < memory["scheduler"] < 200 < memory["trainers"][0] < 2000 and 20 < memory["groups"] < 200
    runs = [event for event in result.events() if event["event"] == "simulation_run"]
    (start,) = [event for event in result.events() if event["event"] == "start"]
    assert len(runs) == 24 and sum(run["steps"] for run in runs) == 480
    for group in range(3):
        of = [run for run in runs if run["group"] == group]
        total = sum(run[part] for run in of for part in ("compute_s", "room_s", "next_s", "start_s"))
        busy = max(run["time"] for run in of) - start["time"]  # from joining to the last simulation
        assert 0.8 * busy < total < 1.02 * seconds, (busy, total, seconds)
        computed = last(result.log("solver", group))
        # Between the program's clock and the library's, a busy core may run another process.
        turns = 2e-3 * sum(run["steps"] for run in of)
        assert abs(sum(run["compute_s"] + run["start_s"] for run in of) - computed) < max(0.05 * total, turns)
        assert all(run["start_s"] >= 0.09 for run in of)


def measured_advice(result: Result) -> Advice:
    assert result.status == 0 and result.run is not None, result.logs()
    return advise(measure(look_at(result.run)))


full = pytest.mark.full
SLOW = [
    pytest.param("solvers", {"groups": 2, "sleep": 0.05, "train": (0.02,), "count": 8}, id="solvers"),
    pytest.param("training", {"groups": 4, "sleep": 0.01, "train": (0.1,), "count": 8}, marks=full, id="training"),
    pytest.param("slow group", {"groups": 8, "sleep": 0.08, "train": (0.02,), "count": 32, "factor": 5.0}, marks=full,
                 id="slow group"),
    pytest.param("buffer", {"groups": 2, "sleep": 0.8, "every": 40, "train": (0.05,), "count": 24,
                            "buffer": {"capacity": 8}}, marks=full, id="buffer"),
    pytest.param("disk", {"groups": 4, "sleep": 0.02, "train": (0.05,), "count": 8, "record": {"path": "samples"}},
                 marks=full, id="disk"),
    pytest.param("disk", {"groups": 2, "sleep": 0.02, "train": (0.02,), "count": 8, "record": {"path": "samples"},
                          "side": 512, "buffer": {"capacity": 20}}, marks=full, id="disk that makes wait"),
    pytest.param("slow trainer", {"groups": 4, "sleep": 0.01, "train": (0.02, 0.1), "count": 16}, marks=full,
                 id="slow trainer"),
    pytest.param("too many groups", {"groups": 24, "sleep": 0.1, "train": (0.2,), "count": 48}, marks=full,
                 id="too many groups"),
    pytest.param("start-up", {"groups": 2, "sleep": 0.01, "start": 3.0, "train": (0.02,), "count": 6, "steps": 20},
                 marks=full, id="start-up"),
    pytest.param("long simulation", {"groups": 5, "sleep": 0.03, "train": (0.02,), "count": 25, "long": 15}, marks=full,
                 id="long simulation"),
    # Small samples: all are on their way before the training has drawn half of them.
    pytest.param("training", {"groups": 4, "sleep": 0.02, "train": (0.1,), "count": 16, "side": 8}, marks=full,
                 id="training that takes small samples"),
    pytest.param("balanced", {"groups": 4, "sleep": 0.042, "train": (0.04,), "count": 24}, marks=full, id="balanced"),
]  # fmt: skip


@pytest.mark.parametrize(("cause", "job"), SLOW)
def test_advice_names_the_bottleneck_of_a_job(folder: JobFolder, cause: str, job: dict) -> None:
    write_slow_job(folder, **job)
    if cause == "disk":
        folder.write(sitecustomize="from preloads import slow_record\nslow_record.slow_down(row_s=0.05)\n")
    advice = measured_advice(folder.run(timeout=170))
    print(*advice.sentences, sep="\n")
    assert advice.cause == cause, advice.sentences


TRIED = {
    "solvers": {"groups": 2, "sleep": 0.05, "train": (0.02,), "count": 8},
    "training": {"groups": 4, "sleep": 0.04, "train": (0.1,), "count": 24},
    "buffer": {"groups": 2, "sleep": 0.8, "every": 40, "train": (0.05,), "count": 24, "buffer": {"capacity": 8}},
    "too many groups": {"groups": 24, "sleep": 0.1, "train": (0.2,), "count": 48, "steps": 20},
}


@full
@pytest.mark.parametrize("cause", TRIED)
def test_applied_advice_gives_the_predicted_throughput(folder: JobFolder, cause: str) -> None:
    job = dict(TRIED[cause])
    write_slow_job(folder, **job)
    advice = measured_advice(folder.run(timeout=170))
    assert advice.cause == cause and advice.samples_s is not None, advice.sentences
    # A run as long as the first, with the advice applied.
    groups, trainers = advice.groups or job["groups"], advice.trainers or len(job["train"])
    job |= {"groups": groups, "train": job["train"] * trainers, "count": max(job["count"], 4 * groups)}
    job["buffer"] = {"capacity": advice.capacity or job.get("buffer", {}).get("capacity", 200)}
    write_slow_job(folder, **job)
    result = folder.run(timeout=170)
    assert result.status == 0 and result.run is not None, result.logs()
    tried = measure(look_at(result.run))
    assert tried is not None
    print(f"{cause}: {advice.samples_s:.1f} samples a second expected, {tried.samples_s:.1f} when tried")
    assert 0.8 < tried.samples_s / advice.samples_s < 1.25
