"""A carried program in an allocation: srun starts its ranks in separate steps."""

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import carried_job
import psutil
import pytest
import yaml
from batch import BatchFolder
from jobs import BIN, ranks_that, variables_of
from waiting import wait_until


@pytest.mark.full
def test_srun_starts_ranks_on_the_nodes_of_their_carriers(folder: BatchFolder, carried: Callable[..., Path]) -> None:
    program = carried("pattern", str(BIN / "mpicc"))
    keys = {"carried": {"ranks": 4}, "ranks_per_group": 3, "groups": 1, "timeout_s": 20}
    carried_job.write_job(folder, program, "copy", "9", depth=9, **keys)
    job = yaml.safe_load((folder.path / "job.yaml").read_text())
    own = ["export TMPDIR=/dev/shm", "export SLURM_MPI_TYPE=pmix", "export OMPI_MCA_btl_tcp_if_include=lo"]
    job["slurm"] = {"setup": own}  # the nodes share all other folders
    (folder.path / "job.yaml").write_text(yaml.safe_dump(job))
    job = folder.submit("--set", "slurm.nodes=3", "--set", "trainers.per_node=1")
    result = folder.wait(job, timeout=120)
    carried_job.check(folder, result)
    places = folder.hosts(result.run)
    assert places["solver-0-0"] == places["solver-0-1"] != places["solver-0-2"], places


def strike(folder: BatchFolder, what: str, job: str) -> None:
    """Kill a rank of the program or the srun that started it."""

    def struck() -> bool:
        assert folder.state(job).get("JobState") in ("PENDING", "RUNNING"), folder.output(job)
        with contextlib.suppress(psutil.Error):
            carriers = ranks_that(folder.path, lambda rank: rank.name() == "mpidata-carrier")
            launchers = [child for rank in carriers for child in rank.children() if child.name() == "srun"]
            for process in psutil.process_iter() if launchers else ():
                with contextlib.suppress(psutil.Error):
                    ours = process.name().startswith("pattern") and str(folder.path) in str(variables_of(process))
                    if ours and time.time() - process.create_time() > 1.5:  # a simulation is running
                        (launchers[0] if what == "srun" else process).kill()
                        return True
        return False

    wait_until(struck, 60, every_s=0.2, told=lambda: f"no {what} to kill")


@pytest.mark.full
@pytest.mark.parametrize("what", ["rank", "srun"])
def test_death_in_a_slurm_step_is_retried(folder: BatchFolder, carried: Callable[..., Path], what: str) -> None:
    program = carried("pattern", str(BIN / "mpicc"))
    keys = {"carried": {"ranks": 2}, "groups": 1, "timeout_s": 20, "start_timeout_s": 40}
    carried_job.write_job(folder, program, "slow", "9", depth=9, **keys)
    yaml_file = folder.path / "job.yaml"
    job_file = yaml.safe_load(yaml_file.read_text())
    own = ["export TMPDIR=/dev/shm", "export SLURM_MPI_TYPE=pmix", "export OMPI_MCA_btl_tcp_if_include=lo"]
    job_file["slurm"] = {"setup": own}
    yaml_file.write_text(yaml.safe_dump(job_file))
    job = folder.submit("--set", "slurm.nodes=2", "--set", "trainers.per_node=1")
    folder.wait_for_start(job)
    strike(folder, what, job)
    result = folder.wait(job, timeout=120)
    carried_job.check(folder, result)
    assert result.summary["retries"] and result.summary["lost_groups"] == 0
    steps = folder.call("squeue", "--steps", "--noheader", "--job", job).stdout
    assert not steps.strip(), steps


@pytest.mark.full
def test_more_starts_than_max_step_count_are_refused(folder: BatchFolder, carried: Callable[..., Path]) -> None:
    program = carried("pattern", str(BIN / "mpicc"))
    each = {"lifetime": "simulation", "carried": {"ranks": 2}}
    carried_job.write_job(folder, program, "copy", "9", "{simulation}", depth=9, **each)
    job = yaml.safe_load((folder.path / "job.yaml").read_text())
    job["parameters"]["count"] = 1000000
    (folder.path / "job.yaml").write_text(yaml.safe_dump(job))
    result = folder.wait(folder.sbatch(f"'{BIN}/mpidata' check job.yaml", "--nodes=1"), timeout=60)
    assert result.status != 0
    said = " ".join(result.output.split())
    assert "but Slurm lets a job make 40000 steps (MaxStepCount). Write 'lifetime: pool'" in said
