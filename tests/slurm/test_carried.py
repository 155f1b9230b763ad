"""A carried program in an allocation: srun starts its ranks, in steps of their own."""

from collections.abc import Callable
from pathlib import Path

import carried_job
import pytest
import yaml
from batch import BatchFolder
from jobs import BIN


@pytest.mark.full
def test_srun_starts_the_ranks_where_their_carriers_are(folder: BatchFolder, carried: Callable[..., Path]) -> None:
    program = carried("pattern", str(BIN / "mpicc"))
    keys = {"carried": {"ranks": 4}, "ranks_per_group": 3, "groups": 1, "timeout_s": 20}
    carried_job.write_job(folder, program, "copy", "9", depth=9, **keys)
    job = yaml.safe_load((folder.path / "job.yaml").read_text())
    own = ["export TMPDIR=/dev/shm", "export SLURM_MPI_TYPE=pmix", "export OMPI_MCA_btl_tcp_if_include=lo"]
    job["slurm"] = {"setup": own}  # these nodes share all other folders
    (folder.path / "job.yaml").write_text(yaml.safe_dump(job))
    job = folder.submit("--set", "slurm.nodes=3", "--set", "trainers.per_node=1")
    result = folder.wait(job, timeout=120)
    carried_job.check(folder, result)
    places = folder.hosts(result.run)
    assert places["solver-0-0"] == places["solver-0-1"] != places["solver-0-2"], places


@pytest.mark.full
def test_more_starts_than_steps_are_refused(folder: BatchFolder, carried: Callable[..., Path]) -> None:
    program = carried("pattern", str(BIN / "mpicc"))
    each = {"lifetime": "simulation", "carried": {"ranks": 2}}
    carried_job.write_job(folder, program, "copy", "9", "{simulation}", depth=9, **each)
    job = yaml.safe_load((folder.path / "job.yaml").read_text())
    job["parameters"]["count"] = 1000000
    (folder.path / "job.yaml").write_text(yaml.safe_dump(job))
    result = folder.wait(folder.sbatch(f"{BIN / 'mpidata'} check job.yaml", "--nodes=1"), timeout=60)
    assert result.status != 0
    said = " ".join(result.output.split())
    assert "but Slurm lets a job make 40000 steps (MaxStepCount). Write 'lifetime: pool'" in said
