"""Models of DTensors on a mesh of replicas and their ranks learn as one whole model does, also after a resume."""

import json
from pathlib import Path

import pytest
from example_copy import copy_example
from jobs import BIN, JobFolder, python, sets
from replica_job import STEPS, check


def test_two_by_two_mesh_learns_like_an_undivided_model_and_resumes(folder: JobFolder) -> None:
    """Each rank also restores its parts from the one checkpoint of its replica."""
    folder.variables = {"STEPS": str(STEPS), "SLEEP_S": "0.01"}
    count, options = 10, {"checkpoint": 3, "kill": 3}
    program = python("trainers/replicas/mesh.py", json.dumps(options))
    folder.job(
        trainers={"ranks": 4, "ranks_per_replica": 2, "program": program},
        solvers={"groups": 1, "function": "functions.steps:simulate"},
        parameters={"count": count, "space": {"alpha": [0.0, 1.0]}},
        buffer={"policy": "firo", "capacity": 20, "watermark": 4},
    )
    died = folder.run(timeout=120)
    assert died.status == 1 and died.run is not None and "SIGKILL" in died.summary["error"], died.logs()
    samples = {(simulation, step) for simulation in range(count) for step in range(STEPS)}
    job = {"policy": "firo", "replicas": 2, "each": 2, "batch_size": 4, "samples": samples, "losses": [], "kill": 3}
    check(job, folder.resume(died.run, timeout=120))


@pytest.mark.full
def test_model_parallel_example_learns(tmp_path: Path) -> None:
    copy_example("model_parallel", tmp_path)
    command = [str(BIN / "mpidata"), "run", "model_parallel.yaml", *sets("name=job", "parameters.count=12")]
    result = JobFolder(tmp_path).run(command=command, timeout=120)
    assert result.status == 0, result.logs()
    loss = result.summary["training"]["loss"]
    assert loss["last"] < 0.2 * loss["first"], loss
    assert result.summary["batches"]["per_trainer"] == [37, 37]
