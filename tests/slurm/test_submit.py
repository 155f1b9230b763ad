"""`mpidata submit` with a real Slurm: each template runs the heat example to its end."""

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml
from batch import BatchFolder, summaries
from jobs import BIN, named, ranks_of
from killing import STEPS, check_exactly_once
from pages import README, blocks, files

COUNT = 40
EXPORT = "export OMPI_MCA_btl_tcp_if_include=lo"  # as in Cluster.variables
FIFO = {"policy": "fifo", "capacity": 500}


def test_homogeneous_job_completes(folder: BatchFolder, built_heat2d: Path) -> None:
    """The job runs without the environment from which it is submitted, as clusters recommend."""
    folder.heat2d(built_heat2d, count=4, slurm={"options": {"export": "NONE"}, "setup": [EXPORT]})
    job = folder.submit("--set", "trainers.per_node=1", "--set", "slurm.nodes=4")
    result = folder.wait(job, timeout=100)
    assert result.status == 0, result.logs()
    assert result.summary["status"] == "complete"
    check_exactly_once(folder, result.run, 4)
    places = {"scheduler": "n1", "trainer-0": "n1", "trainer-1": "n2", "solver-0-0": "n3", "solver-1-0": "n4"}
    assert folder.hosts(result.run) == places
    assert "n1: the scheduler, trainer 0\n" in result.output  # printed before the start
    start = json.loads((result.run / "slurm.jsonl").read_text())
    assert (start["number"], start["requeued"], start["nodes"]) == (job, 0, "n[1-4]")


def test_mistakes_are_refused(folder: BatchFolder) -> None:
    folder.job(trainers={"program": ["true"]}, solvers={"program": ["true"], "groups": 9})
    mpidata = shlex.quote(f"{BIN}/mpidata")
    script = f"""
    {mpidata} run job.yaml; echo "few $?"
    {mpidata} run job.yaml --set trainers.per_node=1 --set trainers.ranks=3 --set solvers.groups=1; echo "per_node $?"
    srun --mpi=pmix -n 4 {mpidata} run job.yaml; echo "by hand $?"
    """
    result = folder.wait(folder.sbatch(script, "--nodes=2", "--ntasks-per-node=2"), timeout=60)
    assert result.run is None and result.seconds < 40
    few, per_node, by_hand = re.split(r"few 2\n|per_node 2\n", result.output)
    assert "have 4 CPUs, but the job needs 10 (1 trainers, 9 groups of 1)" in few and "mpidata submit" in few
    assert "room for 2 of 3 trainers at 1 a node" in per_node and "n1: 2 CPUs, n2: 2 CPUs" in per_node
    assert "started 4 ranks, but the job has 11" in by_hand and "by hand 2" in by_hand


def test_refusal_of_sbatch_is_reported(folder: BatchFolder) -> None:
    folder.job(trainers={"program": ["true"]}, solvers={"program": ["true"]})
    done = folder.call(str(BIN / "mpidata"), "submit", "job.yaml", "--set", "slurm.options={partition: gpus}")
    assert done.returncode == 2 and "sbatch refused the job" in done.stderr and "partition" in done.stderr


@pytest.mark.full
def test_job_launched_with_srun_completes(folder: BatchFolder, built_heat2d: Path) -> None:
    folder.heat2d(built_heat2d, count=8, launch={"with": "srun"})
    result = folder.wait(folder.submit(), timeout=150)
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    check_exactly_once(folder, result.run, 8)
    assert len(set(folder.hosts(result.run).values())) == 3


@pytest.mark.full
def test_heterogeneous_job_completes(folder: BatchFolder, built_heat2d: Path) -> None:
    folder.heat2d(built_heat2d, count=8, slurm={"template": "heterogeneous"})
    result = folder.wait(folder.submit("--set", "trainers.per_node=1", "--set", "slurm.nodes=2"), timeout=150)
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    check_exactly_once(folder, result.run, 8)
    hosts = folder.hosts(result.run)
    assert hosts["scheduler"] == hosts["trainer-0"] != hosts["trainer-1"]
    assert {hosts["solver-0-0"], hosts["solver-1-0"]}.isdisjoint({hosts["trainer-0"], hosts["trainer-1"]})


@pytest.mark.full
@pytest.mark.timeout(400)
def test_heterogeneous_job_resumes_after_a_death(folder: BatchFolder, built_heat2d: Path) -> None:
    """Under srun, the death of a solver ends the step, and the run resumes from its last checkpoint."""
    keys = {"checkpoint": {"every_s": 2.0}, "slurm": {"template": "heterogeneous"}, "buffer": FIFO}
    folder.heat2d(built_heat2d, COUNT, pause=0.03, **keys)
    job = folder.submit("--set", "trainers.per_node=1")
    folder.wait_for_start(job)
    folder.wait_for_checkpoint()
    named(ranks_of(folder.path), "heat2d")[0].kill()
    result = folder.wait(job, timeout=300)
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    assert "Starting again (restart 1 of 3)" in result.output
    check_exactly_once(folder, result.run, COUNT)


@pytest.mark.full
def test_readme_job_with_its_cluster_keys_completes(folder: BatchFolder) -> None:
    """The README's job runs with the keys of its section on clusters, as a new user would submit it."""
    for name, text in files(README).items():
        (folder.path / name).write_text(text)
    (slurm,) = [block.text for block in blocks("yaml", page=README) if "slurm:" in block.text]
    small = "parameters: {count: 8, sampler: sobol, space: {alpha: [0.01, 0.4]}}\n"
    job = yaml.safe_load((folder.path / "job.yaml").read_text()) | yaml.safe_load(slurm) | yaml.safe_load(small)
    (folder.path / "job.yaml").write_text(yaml.safe_dump({**job, "name": "job"}))
    built = folder.call("sh", "-c", 'eval "mpicc solver.c -o solver $(mpidata config --cflags --libs)"')
    assert built.returncode == 0, built.stderr
    assert "--comment=surrogate" in folder.call("sh", "-c", "mpidata submit job.yaml --print").stdout
    result = folder.wait(folder.submit("--template", "preemptible"), timeout=150)
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    assert result.summary["samples"]["received"] == 800
    assert len(set(folder.hosts(result.run).values())) == 4


def preemptible(folder: BatchFolder, built: Path, pause: float, limit: str = "10", *more: str) -> str:
    """Submit a preemptible job whose trainers sleep, with a checkpoint every 2 s."""
    folder.heat2d(
        built,
        COUNT,
        pause,
        checkpoint={"every_s": 2.0, "within_s": 20.0},
        slurm={"template": "preemptible", "time": limit},
        buffer=FIFO,
    )
    return folder.submit("--set", "slurm.signal_s=60", *more)


def check_whole(folder: BatchFolder, job: str, starts: int | None, timeout: float) -> list[dict]:
    """Wait for the job's end; check that it used every sample exactly once. Return all summaries.

    `starts` is None if it depends on the machine's speed.
    """
    result = folder.wait(job, timeout)
    assert result.status == 0 and result.run is not None and result.run.name == "1", result.logs()
    assert result.summary["status"] == "complete" and result.summary["samples"]["received"] == COUNT * STEPS
    check_exactly_once(folder, result.run, COUNT)
    restarts = int(folder.state(job)["Restarts"])
    assert starts in (None, restarts + 1)
    assert len(re.findall("Resuming .* from checkpoint", result.output)) == restarts
    return summaries(result.run)


@pytest.mark.full
def test_uninterrupted_preemptible_job_completes(folder: BatchFolder, built_heat2d: Path) -> None:
    check_whole(folder, preemptible(folder, built_heat2d, pause=0), starts=1, timeout=150)


@pytest.mark.full
@pytest.mark.timeout(400)
def test_preempted_job_resumes(folder: BatchFolder, built_heat2d: Path) -> None:
    job = preemptible(folder, built_heat2d, pause=0.03)
    folder.wait_for_start(job)
    urgent = folder.sbatch("sleep 3", "--partition=urgent", "--nodes=8", "--exclusive")
    first, _ = check_whole(folder, job, starts=2, timeout=300)
    assert first["status"] == "stopped" and first["reason"].startswith("SIGUSR1: checkpoint ")
    assert folder.state(urgent)["JobState"] == "COMPLETED"


@pytest.mark.full
@pytest.mark.timeout(400)
def test_requeued_job_resumes(folder: BatchFolder, built_heat2d: Path) -> None:
    job = preemptible(folder, built_heat2d, pause=0.03)
    folder.wait_for_start(job)
    folder.wait_for_checkpoint()
    assert folder.call("scontrol", "requeue", job).returncode == 0
    check_whole(folder, job, starts=2, timeout=300)


@pytest.mark.full
@pytest.mark.timeout(400)
@pytest.mark.parametrize("way", ["requeued", "no-kill", "no-kill of the default template"])
def test_job_completes_after_the_loss_of_a_node(folder: BatchFolder, built_heat2d: Path, way: str) -> None:
    """Slurm requeues the job; with --no-kill the job continues in the rest of its allocation."""
    no_kill = way != "requeued"
    options = ["--set", "slurm.options={no-kill: true}"] if no_kill else []
    options += ["--template", "homogeneous"] if "default" in way else []
    job = preemptible(
        folder, built_heat2d, 0.03, "10", "--set", "trainers.per_node=1", "--set", "slurm.nodes=4", *options
    )
    folder.wait_for_start(job)
    folder.wait_for_checkpoint()
    lost = folder.hosts(folder.path / "runs" / "job" / "1")["solver-1-0"]
    only_taken = "default" in way  # Slurm notices before the other nodes do
    (folder.cluster.take_for_lost if only_taken else folder.cluster.power_off)(lost)
    try:
        result = folder.wait(job, timeout=300)
    finally:
        folder.cluster.cancel_all()
        folder.cluster.find_again() if only_taken else folder.cluster.power_on(lost)
    assert result.status == 0 and result.run is not None and result.run.name == "1", result.logs()
    assert result.summary["status"] == "complete" and result.summary["samples"]["received"] == COUNT * STEPS
    check_exactly_once(folder, result.run, COUNT)
    assert int(folder.state(job)["Restarts"]) == int(not no_kill)
    assert (f"Without {lost}, which cannot be reached." in result.output) == no_kill, result.output
    assert set(re.findall(r"Host (\S+) is lost", result.output)) == ({lost} if no_kill else set()), result.output


@pytest.mark.full
@pytest.mark.timeout(900)
def test_job_longer_than_its_time_limit_resumes_until_complete(folder: BatchFolder, built_heat2d: Path) -> None:
    job = preemptible(folder, built_heat2d, pause=0.2, limit="2")
    *before, last = check_whole(folder, job, starts=None, timeout=800)
    assert before and {summary["status"] for summary in before} == {"stopped"} and last["status"] == "complete"
    assert all(summary["reason"].startswith("SIGUSR1") for summary in before)
