"""mpidata run --replay repeats the batches of an earlier run, whatever the timing, or names the sample in an error."""

import json

import pytest
from jobs import JobFolder, Result, python, read_rows

POLICIES = ("fifo", "firo", "reservoir")


def write(folder: JobFolder, policy: str, trainers: int = 2, count: int = 12, **more: object) -> None:
    folder.job(
        journal=True,
        trainers={"ranks": trainers, "program": python("trainers/checks/hash_batches.py")},
        solvers={"groups": 2, "function": "functions.timing.random_timing:simulate", "in_flight": 2},
        parameters={"count": count, "space": {"alpha": [0.0, 1.0]}},
        fields={"u": {"dtype": "float64", "shape": [4, 6]}},
        buffer={"policy": policy, "capacity": 10, "watermark": 0 if policy == "fifo" else 3, **more},
    )


def run(folder: JobFolder, *arguments: str, status: int = 0) -> Result:
    if arguments:
        command = [*folder.command()[:2], *arguments]
        result = folder.run(command=command, timeout=100)
    else:
        result = folder.run(timeout=100)
    assert result.status == status, result.logs()
    return result


def batches(result: Result, trainers: int = 2) -> list[list[str]]:
    logs = [result.log("trainer", trainer).splitlines() for trainer in range(trainers)]
    return [[line for line in log if line.startswith("batch ")] for log in logs]


def journals(result: Result) -> list[str]:
    assert result.run is not None
    return [path.read_text() for path in sorted((result.run / "journal").iterdir())]


def check_replays(folder: JobFolder, times: int, *arguments: str, trainers: int = 2) -> None:
    first = run(folder)
    assert len(batches(first, trainers)[0]) > 6
    for _ in range(times):
        again = run(folder, "--replay", str(first.run), *arguments)
        assert again.run != first.run
        assert batches(again, trainers) == batches(first, trainers)
        assert journals(again) == journals(first)


@pytest.mark.parametrize("policy", [*(pytest.param(p, marks=pytest.mark.full) for p in POLICIES[:2]), POLICIES[2]])
def test_a_replay_hands_out_the_same_batches(folder: JobFolder, policy: str) -> None:
    write(folder, policy)
    check_replays(folder, 1)


def test_replay_does_not_stall_if_solvers_are_faster(folder: JobFolder) -> None:
    write(folder, "reservoir", count=24, repeats=2.5)
    settings = ["--set", 'solvers.function="functions.timing.varied:simulate"', "--set", "buffer.capacity=30"]
    folder.variables = {"SLEEP_S": "0.004"}
    first = run(folder, str(folder.path / "job.yaml"), *settings)
    folder.variables = {}
    again = run(folder, "--replay", str(first.run))
    assert batches(again) == batches(first) and len(batches(first)[0]) > 100
    assert again.summary["seconds"] < 20  # each sample took ten seconds if a group had to wait


@pytest.mark.full
@pytest.mark.timeout(1000)
@pytest.mark.parametrize("policy", POLICIES)
def test_ten_replays_draw_the_same_batches(folder: JobFolder, policy: str) -> None:
    write(folder, policy, count=40)
    check_replays(folder, 10)


@pytest.mark.full
@pytest.mark.parametrize("more", [{"repeats": 1.5}, {"tail": "repeat"}])
def test_replay_works_with_draw_budgets_and_repeated_tails(folder: JobFolder, more: dict[str, object]) -> None:
    write(folder, "reservoir", **more)
    check_replays(folder, 2)


@pytest.mark.full
def test_replay_works_with_one_trainer_and_more_groups(folder: JobFolder) -> None:
    write(folder, "firo", trainers=1)
    check_replays(folder, 2, "--set", "solvers.groups=4", trainers=1)


@pytest.mark.full
@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("OTHER", "1", "Simulation 5, step 2 has other values than in the replayed run"),
        ("MORE_STEPS", "1", "Simulation 7, step 6 has come, but is not in the replayed run"),
        ("MORE_STEPS", "-2", "does not come: the simulation has fewer steps now"),
    ],
)
def test_deviation_from_the_replayed_run_names_the_sample(
    folder: JobFolder, variable: str, value: str, said: str
) -> None:
    write(folder, "firo")
    first = run(folder)
    folder.variables[variable] = value
    again = run(folder, "--replay", str(first.run), status=1)
    assert again.summary["status"] == "failed" and said in again.summary["error"], again.logs()
    assert value != "-2" or "Simulation 7, step " in again.summary["error"]


@pytest.mark.full
def test_many_additional_steps_are_reported_quickly(folder: JobFolder) -> None:
    write(folder, "reservoir", trainers=1, count=40)
    first = run(folder)
    folder.variables["STEPS"] = "30"
    again = run(folder, "--replay", str(first.run), status=1)
    assert "has come, but is not in the replayed run" in again.summary["error"], again.logs()
    assert again.seconds < 30, again.seconds  # holding them all, with 10 s for every few, would take minutes


@pytest.mark.full
def test_stopped_run_is_replayed_up_to_its_end(folder: JobFolder) -> None:
    write(folder, "reservoir")
    folder.variables["STOP_AFTER"] = "5"
    first = run(folder)
    again = run(folder, "--replay", str(first.run))
    assert batches(again)[0] == batches(first)[0] and len(batches(first)[0]) == 5
    del folder.variables["STOP_AFTER"]
    further = run(folder, "--replay", str(first.run), status=1)
    assert "ends after 5 batches" in further.summary["error"], further.logs()


@pytest.mark.full
def test_impossible_replays_are_refused(folder: JobFolder) -> None:
    write(folder, "fifo")
    first = run(folder)
    for override, said in (
        ("seed=5", "'seed' cannot be changed in a replay"),
        ("buffer.capacity=20", "'buffer' cannot be changed in a replay"),
        ("trainers.ranks=1", "'trainers.ranks' cannot be changed"),
        ("solvers.groups=1", "'solvers.groups' must be at least 2"),
    ):
        assert said in run(folder, "--replay", str(first.run), "--set", override, status=2).output
    windows = ("--set", "samples.window=2", "--set", "journal=false")
    assert "'samples' cannot be changed" in run(folder, "--replay", str(first.run), *windows, status=2).output
    again = run(folder, "--replay", str(first.run), "--set", "journal=false")
    assert "has no journal" in run(folder, "--replay", str(again.run), status=2).output
    assert "cannot be resumed" in run(folder, "--resume", str(again.run), status=2).output
    with (first.run / "events.jsonl").open("a") as events:
        events.write('{"time": 1.0, "event": "relief", "trainer": 0}\n')
    assert "take more than its capacity" in run(folder, "--replay", str(first.run), status=2).output


@pytest.mark.full
@pytest.mark.parametrize("policy", POLICIES)
def test_retried_simulations_are_replayed(folder: JobFolder, policy: str) -> None:
    write(folder, policy)
    folder.variables["DEATHS"] = "[[2, 0], [5, 3], [7, 4]]"
    dying = ("--set", "solvers.function=functions.failing.dies:simulate", "--set", "solvers.start=spawn")
    first = run(folder, "job.yaml", *dying)
    assert {entry["simulation"] for entry in first.summary["retries"]} >= {2, 5, 7}
    assert batches(run(folder, "--replay", str(first.run))) == batches(first), "nothing dies now"
    folder.variables["DEATHS"] = "[[1, 2], [5, 1], [9, 0]]"
    again = run(folder, "--replay", str(first.run))
    assert {entry["simulation"] for entry in again.summary["retries"]} >= {1, 5, 9}
    assert batches(again) == batches(first), "others die now"


@pytest.mark.full
def test_replay_of_a_resumed_run_is_refused(folder: JobFolder) -> None:
    write(folder, "fifo", 1)
    folder.variables["FAIL_AFTER"] = "5"
    first = run(folder, status=1)
    run(folder, "--resume", str(first.run))
    assert "was resumed, and cannot be replayed" in run(folder, "--replay", str(first.run), status=2).output


@pytest.mark.full
def test_replay_cancels_simulations_whose_parameters_were_never_drawn(folder: JobFolder) -> None:
    """A sampler that learns had not drawn their parameters: they gave no samples, and give none again."""
    folder.job(
        journal=True,
        trainers={"ranks": 2, "program": python("trainers/cancels.py", "first", *range(10, 30))},
        solvers={"groups": 2, "function": "functions.steps:simulate"},
        parameters={"count": 30, "sampler": "samplers.nearby:Nearby", "space": {"alpha": [0.0, 1.0]}},
        fields={"u": {"dtype": "float32", "shape": [4, 6]}},
        buffer={"policy": "fifo", "capacity": 10},
    )
    folder.variables["STEPS"] = "6"
    first = run(folder)
    rows = read_rows(first.run / "parameters.csv")
    assert first.summary["cancelled"] == list(range(10, 30)) and len(rows) < 30, rows
    again = run(folder, "--replay", str(first.run))
    assert again.summary["cancelled"] == list(range(10, 30)), again.logs()
    for trainer in (0, 1):
        drawn = [json.loads(result.marked(index=trainer)[0])["drawn"] for result in (first, again)]
        assert drawn[0] == drawn[1] and len(drawn[0]) == 30, again.logs()
