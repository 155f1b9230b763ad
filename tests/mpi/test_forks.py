"""Forks that may run beside the stream: torch's workers for other data, pools, programs."""

from jobs import JobFolder, python


def test_workers_pools_and_programs_can_run_beside_the_stream(folder: JobFolder) -> None:
    folder.variables = {"STEPS": "10"}
    folder.job(
        trainers={"ranks": 2, "program": python("trainers/forks_beside.py")},
        solvers={"function": "functions.steps:simulate", "groups": 1},
        parameters={"count": 12, "space": {"alpha": [0.0, 1.0]}},
    )
    result = folder.run(timeout=90)
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    assert all("batches 15" in result.log("trainer", trainer) for trainer in range(2)), result.logs()
