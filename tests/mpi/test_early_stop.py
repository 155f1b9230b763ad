"""A trainer that leaves early, or fails, ends the whole job soon and in order."""

import pytest
from jobs import JobFolder, Result, python


def run(folder: JobFolder, action: str, rank: int | str, how: str) -> Result:
    folder.variables = {"STEPS": "1000", "SLEEP_S": "0.005"}
    folder.job(
        trainers={"ranks": 2, "program": python("trainers/stopping/leaves_early.py", action, rank, how)},
        solvers={"function": "functions.steps:simulate", "groups": 2},
        parameters={"count": 50, "space": {"alpha": [0.0, 1.0]}},
    )
    result = folder.run(timeout=120)
    events = result.events()
    stop = next(line for line in events if line["event"] == "stop")
    # 7 s by the scheduler's own clock (tests/unit/scheduler); on a busy machine, wall time may be longer.
    assert events[-1]["time"] - stop["time"] < 20, result.logs()
    return result


@pytest.mark.parametrize("how", [pytest.param("plain", marks=pytest.mark.full), "ddp"])
def test_break_on_all_trainers_is_a_success(folder: JobFolder, how: str) -> None:
    result = run(folder, "break", "all", how)
    assert result.status == 0, result.logs()
    assert result.summary["status"] == "stopped" and result.summary["error"] is None
    assert "the script ended after batch 6, before the stream was over" in result.summary["reason"]
    assert min(result.summary["batches"]["per_trainer"]) == 6


def test_break_on_one_trainer_ends_the_others(folder: JobFolder) -> None:
    result = run(folder, "break", 1, "plain")
    assert result.status == 0, result.logs()
    assert "after the loop, stopped: True" in result.log("trainer", 0) and "after the loop" in result.log("trainer", 1)
    assert result.summary["status"] == "stopped"


def test_break_on_one_trainer_of_ddp_does_not_hang(folder: JobFolder) -> None:
    result = run(folder, "break", 1, "ddp")
    assert result.summary["status"] in ("stopped", "failed"), result.logs()
    assert (result.status == 0) == (result.summary["status"] == "stopped")


@pytest.mark.parametrize("how", ["plain", pytest.param("ddp", marks=pytest.mark.full)])
def test_an_exception_on_one_trainer_fails_the_job(folder: JobFolder, how: str) -> None:
    result = run(folder, "raise", 1, how)
    assert result.status == 1, result.logs()
    assert result.summary["status"] == "failed"
    assert "ValueError: loss is nan (leaves_early.py line" in result.summary["error"]


def ten_steps(folder: JobFolder, trainer: str) -> None:
    folder.job(trainers={"program": python(f"trainers/{trainer}")}, solvers={"function": "functions.steps:simulate"})


def test_stream_can_be_iterated_again_after_an_early_break(folder: JobFolder) -> None:
    folder.job(
        trainers={"ranks": 2, "program": python("trainers/stopping/comes_back.py")},
        solvers={"function": "functions.steps:simulate", "groups": 2},
        parameters={"count": 40, "space": {"alpha": [0.0, 1.0]}},
    )
    result = folder.run(timeout=90)
    assert result.status == 0 and result.summary["status"] == "stopped", result.logs()
    for trainer in range(2):
        assert "batches [3, 3, 3]" in result.log("trainer", trainer), result.logs()
    assert result.summary["batches"]["per_trainer"] == [9, 9]


def test_drawing_only_the_first_batch_does_not_stop_the_stream(folder: JobFolder) -> None:
    ten_steps(folder, "stopping/first_batch.py")
    result = folder.run(timeout=60)
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    assert "rest 9" in result.log("trainer")


def test_batches_per_epoch_splits_the_stream_into_epochs(folder: JobFolder) -> None:
    ten_steps(folder, "stopping/epochs.py")
    result = folder.run(timeout=60)
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    assert "epochs [4, 4, 2, 0]" in result.log("trainer")


def test_worker_processes_are_refused(folder: JobFolder) -> None:
    ten_steps(folder, "mistakes/worker_processes.py")
    result = folder.run(timeout=60)
    assert result.status == 1 and "Use num_workers=0" in result.output, result.logs()


def test_a_script_that_fails_after_the_stream_fails_the_job(folder: JobFolder) -> None:
    ten_steps(folder, "mistakes/fails_after_stream.py")
    result = folder.run(timeout=60)
    assert result.status == 1 and result.summary["status"] == "failed", result.logs()
    assert "exit status 1" in result.summary["error"] and "no space for the model" in result.output


@pytest.mark.ulfm
def test_script_continues_after_close_while_a_solver_in_a_long_step_is_ended(folder: JobFolder) -> None:
    folder.job(
        trainers={"ranks": 2, "program": python("trainers/stopping/closes.py")},
        solvers={"function": "functions.timing.long_step:simulate", "groups": 2},
    )
    result = folder.run(timeout=100)
    assert result.status == 0 and result.summary["status"] == "stopped", result.logs()
    assert "the script called stream.close() after batch 3" in result.summary["reason"]
    for trainer in range(2):
        said = ["over: True", "solvers have ended: True", "saved"]
        assert result.log("trainer", trainer).splitlines()[: len(said)] == said
    # After a death MPI_Finalize need not return: docs/failures.md.
    assert "\nfinalized" in result.log("trainer", 1) or "MPI_Finalize did not return" in result.log("trainer", 1)
    events = result.events()
    happened = [(event["event"], event.get("group", event.get("groups"))) for event in events]
    at = {event["simulation"]: event["group"] for event in events if event["event"] == "dispatch"}
    assert ("group_left", at[0]) in happened  # the group learned of it at its next call
    assert ("overdue", [at[1]]) in happened and "group_lost" not in dict(happened)
