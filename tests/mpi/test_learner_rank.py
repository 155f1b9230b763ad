"""The sampler on a learner: what it receives and draws, its deaths, and how a job with it is started."""

import json
from typing import Any

import pytest
from jobs import BIN, JobFolder, Result, python, read_rows

COUNT = 60


def with_learner(folder: JobFolder, sampler: str = "dying:Stateful", **variables: str) -> None:
    folder.variables = {"STEPS": "4", "SLEEP_S": "0.05", "FIRST": "20", **variables}
    folder.job(
        trainers={"program": python("trainers/learning/publishes.py")},
        solvers={"function": "functions.steps:simulate", "groups": 2},
        parameters={
            "count": COUNT,
            "sampler": f"samplers.{sampler}",
            "learner_rank": True,
            "space": {"alpha": [0.0, 1.0]},
        },
    )


def lines(folder: JobFolder, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder.path / name).read_text().splitlines()]


def check_whole(result: Result) -> None:
    """Each simulation ran once, with its own parameters."""
    assert result.status == 0 and result.run is not None, result.logs()
    assert result.summary["simulations"]["complete"] == COUNT and not result.summary["retries"], result.summary
    rows = read_rows(result.run / "parameters.csv")
    assert sorted(rows) == list(range(COUNT))
    dispatched = [event["simulation"] for event in result.events() if event["event"] == "dispatch"]
    assert sorted(dispatched) == list(range(COUNT))


def test_learner_gets_the_newest_published_arrays(folder: JobFolder) -> None:
    with_learner(folder, "reader:Reader")
    result = folder.run()
    check_whole(result)
    told = lines(folder, "observed.txt")
    versions = [line["version"] for line in told]
    assert len(told) > 2 and versions == sorted(versions) and versions[-1] > 20, told
    assert not any(line.get("behind") for line in told), told
    assert result.summary["learner"] == {"joined": 1, "lost": 0}


@pytest.mark.full
@pytest.mark.parametrize("sampler", ["Stateful", "Counting"])
def test_learner_that_dies_is_replaced_and_its_sampler_continues(folder: JobFolder, sampler: str) -> None:
    with_learner(folder, f"dying:{sampler}", DIES_AT="1 4 13" if sampler == "Stateful" else "4 13 22")
    result = folder.run()
    check_whole(result)
    rows = read_rows(result.run / "parameters.csv")
    assert [round(1000 * float(rows[n]["alpha"])) for n in range(COUNT)] == list(range(COUNT))
    assert len(list(folder.path.glob("died-*"))) == 3, result.logs()
    assert result.summary["learner"] == {"joined": 4, "lost": 3}
    told = lines(folder, "told.txt")
    assert len({line["pid"] for line in told}) > 1 and max(line["told"] for line in told) > COUNT // 2
    if sampler == "Stateful":
        assert [line["told"] for line in told] == sorted(line["told"] for line in told), told
        assert [line["calls"] for line in told] == sorted(line["calls"] for line in told), told


@pytest.mark.full
def test_exception_of_the_sampler_fails_the_job(folder: JobFolder) -> None:
    with_learner(folder, "dying:Wrong")
    result = folder.run()
    assert result.status == 1
    assert "fails with ZeroDivisionError: not like this, in " in result.summary["error"], result.summary
    assert "ZeroDivisionError: not like this" in result.log("learner")


@pytest.mark.full
def test_learners_that_die_at_the_same_call_end_the_job(folder: JobFolder) -> None:
    with_learner(folder, "dying:Stateful", DIES_ALWAYS_AT="3")
    result = folder.run()
    assert result.status == 1 and result.summary["learner"]["lost"] == 3, result.summary
    assert "3 learners were lost at the same call of the sampler" in result.summary["error"]


@pytest.mark.full
def test_slow_learner_does_not_delay_simulations(folder: JobFolder) -> None:
    with_learner(folder, SLOW_S="0.4")
    result = folder.run()
    check_whole(result)
    # While the learner computes, sampled simulations run and are trained on: none waits for its next answer.
    drawn_at: dict[int, float] = {}
    for event in result.events():
        if event["event"] == "dispatch":
            drawn_at[event["simulation"]] = event["time"]
        elif event["event"] == "simulation_complete":
            assert event["time"] - drawn_at[event["simulation"]] < 1.0, event
    assert result.seconds > 0.4 * COUNT / 2


@pytest.mark.full
def test_learner_draws_the_same_parameters_as_the_scheduler(folder: JobFolder) -> None:
    tables = []
    for own in (True, False):
        with_learner(folder, "reader:Reader")
        job = folder.path / "job.yaml"
        job.write_text(job.read_text().replace("learner_rank: true", f"learner_rank: {str(own).lower()}"))
        result = folder.run()
        check_whole(result)
        assert ("learner" in result.summary) == own
        tables.append((result.run / "parameters.csv").read_text())
    assert tables[0] == tables[1]


@pytest.mark.full
def test_resume_restores_the_learner_from_the_checkpoint(folder: JobFolder) -> None:
    with_learner(folder)
    job = folder.path / "job.yaml"
    job.write_text(job.read_text().replace("publishes.py", "dies_after_checkpoint.py"))
    first = folder.run()
    assert first.status == 1 and first.run is not None, first.logs()
    result = folder.resume(first.run)
    assert result.status == 0, result.logs()
    assert result.summary["simulations"]["complete"] == COUNT
    rows = read_rows(first.run / "parameters.csv")
    assert [round(1000 * float(rows[n]["alpha"])) for n in range(COUNT)] == list(range(COUNT))
    told = [line["calls"] for line in lines(folder, "told.txt")]
    assert told == sorted(told)


@pytest.mark.full
@pytest.mark.parametrize("ranks", [5, 4])
def test_mpirun_needs_one_rank_for_the_learner(folder: JobFolder, monkeypatch: pytest.MonkeyPatch, ranks: int) -> None:
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
        monkeypatch.setenv(name, "1")
    with_learner(folder, "reader:Reader")
    command = [str(BIN / "mpirun"), "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]
    result = folder.run(command=[*command, str(BIN / "mpidata"), "run", "job.yaml"])
    if ranks == 5:
        check_whole(result)
    else:
        assert result.status != 0 and "-n 5" in result.output and "1 learner" in result.output, result.output


@pytest.mark.full
def test_spare_replaces_a_learner_that_dies(folder: JobFolder) -> None:
    with_learner(folder, DIES_AT="4")
    job = folder.path / "job.yaml"
    job.write_text(job.read_text().replace("learner_rank: true", "learner_rank: true\n  learner_spares: 1"))
    result = folder.run()
    check_whole(result)
    assert result.summary["learner"]["lost"] == 1 and not [e for e in result.events() if e["event"] == "spawn"]
    assert [event["learner"] for event in result.events() if event["event"] == "spare_takes_over"] == [1]
