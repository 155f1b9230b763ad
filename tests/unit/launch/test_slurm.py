"""How ranks are placed in an allocation, and the commands that place them. Needs no Slurm."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from launch_job import make_plan, write_job

from mpidata.config import Job, load_job
from mpidata.errors import LaunchError
from mpidata.launch.batch import srun
from mpidata.launch.batch.allocation import Allocation, Node
from mpidata.launch.batch.placement import Layout, place, tasks_per_node
from mpidata.launch.batch.slurm_nodes import expand_counts, expand_names
from mpidata.launch.batch.srun import srun_command
from mpidata.launch.batch.system import read_allocation
from mpidata.launch.starting import launcher as module
from mpidata.launch.starting.command import mpirun_command
from mpidata.launch.starting.environment import find_place
from mpidata.launch.starting.hosts import ANSWER
from mpidata.launch.starting.launcher import find_launcher, hydra_command, with_threads
from mpidata.mpi.mpi_name import MpiName
from mpidata.run.plan import Plan, Program

HOMOGENEOUS = {
    "SLURM_JOB_ID": "7",
    "SLURM_JOB_NODELIST": "n[1-4]",
    "SLURM_JOB_CPUS_PER_NODE": "2(x4)",
    "SLURM_PROCID": "0",
}
HETEROGENEOUS = {
    **HOMOGENEOUS,
    "SLURM_HET_SIZE": "2",
    "SLURM_JOB_NODELIST_HET_GROUP_0": "g1",
    "SLURM_JOB_CPUS_PER_NODE_HET_GROUP_0": "4",
    "SLURM_JOB_NODELIST_HET_GROUP_1": "c[1-2]",
    "SLURM_JOB_CPUS_PER_NODE_HET_GROUP_1": "2(x2)",
}


def nodes(*cpus: int, gpus: int | None = None) -> Allocation:
    return Allocation("Slurm job 7", (tuple(Node(f"n{i}", count, gpus) for i, count in enumerate(cpus, start=1)),))


def test_node_names_and_counts_are_expanded() -> None:
    assert expand_names("n[1-3,07,10-11],gpu,r[1-2]s[1-2]") == (
        ["n1", "n2", "n3", "n07", "n10", "n11", "gpu", "r1s1", "r1s2", "r2s1", "r2s2"]
    )
    assert expand_names("n[08-10]-ib") == ["n08-ib", "n09-ib", "n10-ib"]
    assert expand_counts("2(x3),4") == [2, 2, 2, 4]
    for bad in ("", "n[1", "n1,,n2"):
        with pytest.raises(ValueError):
            expand_names(bad)
    with pytest.raises(ValueError):
        expand_counts("2x3")


def test_an_allocation_is_read_from_the_environment() -> None:
    assert read_allocation({}) is None
    assert read_allocation({"SLURM_JOB_ID": "7"}) is None
    allocation = read_allocation(HOMOGENEOUS)
    assert allocation is not None and [(n.name, n.cpus) for n in allocation.nodes] == [
        (f"n{i}", 2) for i in (1, 2, 3, 4)
    ]
    both = read_allocation(HETEROGENEOUS)
    assert both is not None and [[n.name for n in part] for part in both.components] == [["g1"], ["c1", "c2"]]
    with pytest.raises(LaunchError, match="4 nodes, but CPUs for 1"):
        read_allocation({**HOMOGENEOUS, "SLURM_JOB_CPUS_PER_NODE": "2"})


def test_allocation_shell_is_not_a_rank() -> None:
    assert find_place({**HOMOGENEOUS, "SLURM_STEP_ID": "4294967290", "SLURM_STEP_NUM_TASKS": "1"}) is None
    assert find_place({**HOMOGENEOUS, "SLURM_STEP_ID": "3", "SLURM_STEP_NUM_TASKS": "1"}) is not None


def test_trainers_are_placed_first_and_solvers_on_the_other_nodes() -> None:
    layout = Layout(trainers=2, groups=4, ranks_per_group=1)
    placement = place(layout, nodes(2, 2, 2, 2))
    assert placement.hosts == ("n1", "n1", "n2", "n3", "n4", "n3", "n4")
    assert list(placement.lines(layout)) == [
        "n1: the scheduler, trainer 0",
        "n2: trainer 1",
        "n3: groups 0, 2 (2 solvers)",
        "n4: groups 1, 3 (2 solvers)",
    ]
    assert placement.trainer_cpus == 2 and placement.components == (7,) and placement.unused == ()


def test_per_node_limits_the_trainers_of_a_node() -> None:
    layout = Layout(trainers=4, groups=3, ranks_per_group=2, per_node=2)
    assert place(layout, nodes(8, 8, 8)).hosts == ("n1", "n1", "n1", "n2", "n2") + 6 * ("n3",)
    packed = dataclasses.replace(layout, per_node=None)
    assert place(packed, nodes(8, 8, 8)).hosts[:5] == 5 * ("n1",)
    assert place(packed, nodes(8, 8, 8)).trainer_cpus == 2
    assert place(dataclasses.replace(layout, per_node=1, trainers=2), nodes(8, 8, 8)).trainer_cpus == 8
    with pytest.raises(LaunchError, match=r"room for 0 of 4 trainers at 3 a node .*'trainers.per_node'"):
        place(dataclasses.replace(layout, per_node=3), nodes(2, 2, 2, 2, 2))


def test_ranks_of_a_replica_share_a_node_if_they_fit() -> None:
    """The first ranks of the replicas come first in the world, and their mates follow."""
    layout = Layout(trainers=6, groups=1, ranks_per_group=2, per_node=2, ranks_per_replica=2)
    placement = place(layout, nodes(4, 4, 4, 4))
    assert placement.hosts == ("n1", "n1", "n2", "n3", "n1", "n2", "n3", "n4", "n4")
    assert list(placement.lines(layout))[:2] == ["n1: the scheduler, trainers 0-1", "n2: trainers 2-3"]
    assert dataclasses.replace(layout, ranks_per_replica=3).order == [0, 3, 1, 2, 4, 5]


def test_gpus_limit_the_trainers_of_a_node() -> None:
    layout = Layout(trainers=4, groups=1, ranks_per_group=1, gpus_per_rank=2)
    assert place(layout, nodes(16, 16, gpus=4)).hosts[:5] == ("n1", "n1", "n1", "n2", "n2")
    with pytest.raises(LaunchError, match="room for 2 of 4 trainers .*2 GPUs each.*n1: 16 CPUs, 4 GPUs"):
        place(layout, nodes(16, gpus=4))


def test_groups_stay_on_one_node_if_they_fit() -> None:
    layout = Layout(trainers=1, groups=3, ranks_per_group=2)
    assert place(layout, nodes(3, 3, 3)).hosts == ("n1", "n1", "n2", "n2", "n3", "n3", "n2", "n3")
    assert place(layout, nodes(8, 2)).hosts == ("n1", "n1", "n2", "n2", "n1", "n1", "n1", "n1")
    assert place(dataclasses.replace(layout, groups=1), nodes(2, 2, 9)).unused == ("n2",)


def test_loaders_and_servers_are_placed_last_on_the_emptiest_nodes() -> None:
    layout = Layout(trainers=1, groups=1, ranks_per_group=2, loaders=3)
    placement = place(layout, nodes(2, 3, 2))
    assert placement.hosts == ("n1", "n1", "n2", "n2", "n3", "n2", "n3")
    assert list(placement.lines(layout)) == [
        "n1: the scheduler, trainer 0",
        "n2: group 0 (2 solvers), loader 1",
        "n3: loaders 0, 2",
    ]
    alone = Layout(trainers=2, groups=0, ranks_per_group=1, loaders=3)
    assert place(alone, nodes(4, 3)).hosts == ("n1", "n1", "n1", "n2", "n2", "n2") and alone.cpus == 7
    assert tasks_per_node(alone, 2) == 4
    with pytest.raises(
        LaunchError, match=r"needs 5 \(2 trainers, 3 loaders\).*lower 'loaders.ranks' or 'trainers.ranks'"
    ):
        place(alone, nodes(2, 2))
    served = dataclasses.replace(alone, loaders=1, servers=2)
    assert place(served, nodes(4, 3)).hosts == place(alone, nodes(4, 3)).hosts and served.cpus == 7
    assert list(place(served, nodes(4, 3)).lines(served))[1] == "n2: loader 0, servers 0-1"
    with pytest.raises(LaunchError, match=r"needs 5 \(2 trainers, 1 loaders, 2 servers\)"):
        place(served, nodes(2, 2))
    asked = dataclasses.replace(alone, loaders=0, inference=2, learners=1)
    assert place(asked, nodes(4, 3)).hosts == place(alone, nodes(4, 3)).hosts and asked.cpus == 7
    with pytest.raises(
        LaunchError,
        match=r"needs 5 \(2 trainers, 2 inference ranks, 1 ranks for the sampler\).*'inference.ranks' or 'trainers",
    ):
        place(asked, nodes(2, 2))
    later = dataclasses.replace(alone, loaders=0, loaders_later=3)
    assert place(later, nodes(4, 3)).unused == ("n2",)
    with pytest.raises(LaunchError, match="The nodes for the loaders have 2 CPUs, but the loaders need 3"):
        place(alone, Allocation("Slurm job 7", ((Node("g1", 4),), (Node("c1", 2),))))


def test_trainers_get_one_cpu_if_cpus_are_scarce() -> None:
    layout = Layout(trainers=2, groups=2, ranks_per_group=1)
    assert place(layout, nodes(2, 2)).hosts == ("n1", "n1", "n1", "n2", "n2")
    assert place(layout, nodes(2, 2)).trainer_cpus == 1
    with pytest.raises(LaunchError, match=r"have 3 CPUs, but the job needs 4 \(2 trainers, 2 groups of 1\).*submit"):
        place(layout, nodes(2, 1))
    with pytest.raises(LaunchError, match="have 3 CPUs, but the job needs 4"):
        place(dataclasses.replace(layout, groups=0, later=2), nodes(2, 1))


def test_heterogeneous_job_separates_trainers_from_solvers() -> None:
    layout = Layout(trainers=2, groups=2, ranks_per_group=2)
    allocation = Allocation("Slurm job 7", ((Node("g1", 4),), (Node("c1", 2), Node("c2", 2))))
    placement = place(layout, allocation)
    assert placement.hosts == ("g1", "g1", "g1", "c1", "c1", "c2", "c2") and placement.components == (3, 4)
    with pytest.raises(LaunchError, match="for the solvers have 4 CPUs, but the solvers need 6"):
        place(dataclasses.replace(layout, groups=3), allocation)
    with pytest.raises(LaunchError, match="3 components"):
        place(layout, Allocation("Slurm job 7", 3 * allocation.components[:1]))


def test_components_of_a_heterogeneous_job_may_share_a_node() -> None:
    layout = Layout(trainers=2, groups=1, ranks_per_group=3)
    placement = place(layout, Allocation("Slurm job 7", ((Node("n1", 4),), (Node("n1", 3),))))
    assert placement.hosts == ("n1",) * 6 and placement.components == (3, 3) and placement.trainer_cpus == 2


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize("per_node", [None, 1, 2])
def test_requested_tasks_per_node_suffice(count: int, per_node: int | None) -> None:
    layout = Layout(trainers=2, groups=5, ranks_per_group=3, per_node=per_node)
    if per_node == 1 and count == 1:
        with pytest.raises(LaunchError, match="need 2 nodes, but there are 1"):
            tasks_per_node(layout, count)
        return
    cpus = tasks_per_node(layout, count)
    placement = place(layout, nodes(*count * [cpus]))
    assert placement.trainer_cpus >= 2
    with pytest.raises((LaunchError, AssertionError)):
        assert place(layout, nodes(*count * [cpus - 1])).trainer_cpus >= 2


def test_mpirun_hydra_and_srun_commands_start_all_ranks(tmp_path: Path) -> None:
    plan, shim = make_plan(tmp_path, {}), Path("/rank")
    run = str(plan.run)
    free = ["--distribution=arbitrary", "--overcommit", "--cpu-bind=none", "--kill-on-bad-exit=1"]
    assert mpirun_command(Path("/mpirun"), shim, plan, plan.run / "hosts") == (
        ["/mpirun", "-n", "7", "--map-by", "seq:OVERSUBSCRIBE", "--hostfile", f"{run}/hosts", "--bind-to", "none"]
        + ["/rank", run]
    )
    assert hydra_command(Path("/mpirun"), shim, plan) == ["/mpirun", "-n", "7", "/rank", run]
    assert srun_command(Path("/srun"), shim, plan, (7,), "pmi2", ["--mem=0"]) == (
        ["/srun", "--mpi=pmi2", "-n", "7", f"--nodelist={run}/hosts", *free, "--mem=0", "/rank", run]
    )
    assert srun_command(Path("/srun"), shim, plan, (3, 4), None, []) == (
        ["/srun", "--het-group=0", "-n", "3", f"--nodelist={run}/hosts-0", *free, "/rank", run]
        + [":", "--het-group=1", "-n", "4", f"--nodelist={run}/hosts-1", *free, "/rank", run]
    )


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return load_job(write_job(tmp_path))


def launcher(job: Job, environ: dict[str, str], mpi: str, monkeypatch: pytest.MonkeyPatch, **launch: Any) -> Any:
    monkeypatch.setattr(module, "linked_mpi", lambda: MpiName(mpi))
    monkeypatch.setattr(module, "find_mpirun", lambda: Path("/mpi/mpirun"))
    monkeypatch.setattr(srun.shutil, "which", lambda name, path: f"/slurm/{name}" if path else None)
    job = job.model_copy(update={"launch": job.launch.model_copy(update=launch)})
    return find_launcher(job, {**environ, "PATH": "/slurm"})


@pytest.mark.parametrize(
    ("environ", "mpi", "wanted", "program"),
    [
        ({}, "Open MPI", "auto", "/mpi/mpirun"),
        ({}, "MPICH", "auto", "/mpi/mpirun"),
        (HOMOGENEOUS, "Open MPI", "auto", "/mpi/mpirun"),
        (HOMOGENEOUS, "Open MPI", "srun", "/slurm/srun"),
        (HOMOGENEOUS, "MPICH", "auto", "/slurm/srun"),
        (HOMOGENEOUS, "MPICH", "mpirun", "/mpi/mpirun"),
        (HETEROGENEOUS, "Open MPI", "auto", "/slurm/srun"),
    ],
)
def test_launcher_depends_on_allocation_mpi_and_key(
    job: Job, environ: dict[str, str], mpi: str, wanted: str, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = launcher(job, environ, mpi, monkeypatch, with_=wanted)
    assert str(chosen.program) == program and (chosen.placement is None) == (not environ)
    plan = Plan.of(job, job.folder / "run")
    command = chosen.command(Path("/rank"), plan)
    for path in chosen.files(plan):
        assert any(str(path) in word for word in command) or "--het-group=1" in command
    if "srun" in program:
        assert command[1] == {"Open MPI": "--mpi=pmix", "MPICH": "--mpi=pmi2"}[mpi]
        assert chosen.fault_tolerance() == "none"


def test_unavailable_launchers_are_refused(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LaunchError, match="not a Slurm allocation.*mpidata submit"):
        launcher(job, {}, "Open MPI", monkeypatch, with_="srun")
    with pytest.raises(LaunchError, match="'launch.with' is 'mpirun', which cannot use all components"):
        launcher(job, HETEROGENEOUS, "Open MPI", monkeypatch, with_="mpirun")
    spawning = job.model_copy(update={"solvers": job.solvers.model_copy(update={"start": "spawn"})})
    with pytest.raises(LaunchError, match="'solvers.start' is 'spawn', but Open MPI cannot.*srun"):
        launcher(spawning, HOMOGENEOUS, "Open MPI", monkeypatch, with_="srun")
    assert launcher(spawning, HOMOGENEOUS, "MPICH", monkeypatch).environment(None, {}) == {"SLURM_OVERLAP": "1"}
    nothing = {"SLURM_EXPORT_ENV": "NONE"}  # after sbatch --export=NONE; srun would start the daemons without PATH
    assert launcher(job, HOMOGENEOUS, "MPICH", monkeypatch).environment(None, nothing) == {"SLURM_EXPORT_ENV": "ALL"}
    ours = launcher(job, HOMOGENEOUS, "Open MPI", monkeypatch)
    assert ours.environment(None, {})["SLURM_NO_KILL"] == "set"
    assert "SLURM_NO_KILL" not in ours.environment(None, {"SLURM_NO_KILL": "off"})
    monkeypatch.setattr(module, "linked_mpi", lambda: MpiName("MPICH"))
    monkeypatch.setattr(srun.shutil, "which", lambda name, path: None)
    with pytest.raises(LaunchError, match="no srun on PATH"):
        find_launcher(job, HOMOGENEOUS)


def test_launch_options_precede_the_program(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan.of(job, job.folder / "run")
    for environ in ({}, HOMOGENEOUS):
        command = launcher(job, environ, "Open MPI", monkeypatch, options=("--mca", "pml", "ucx")).command(
            Path("/rank"), plan
        )
        assert command[-5:] == ["--mca", "pml", "ucx", "/rank", str(plan.run)]


def test_host_files_list_the_hosts_of_all_ranks(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, more = Plan.of(job, job.folder / "run"), {"SLURM_JOB_NODELIST": "n[1-5]", "SLURM_JOB_CPUS_PER_NODE": "4(x5)"}
    texts = launcher(job, {**HOMOGENEOUS, **more}, "Open MPI", monkeypatch).files(plan)
    # The remaining nodes come last; groups may be spawned there.
    assert texts == {plan.run / "hosts": "n1\nn1\nn1\nn2\nn2\nn3\nn3\nn4\nn5\n"}
    texts = launcher(job, {**HOMOGENEOUS, **more}, "MPICH", monkeypatch, with_="mpirun").files(plan)
    assert texts == {plan.run / "hosts": "n1:3\nn2:2\nn3:2\n"}
    texts = launcher(job, HETEROGENEOUS, "MPICH", monkeypatch).files(plan)
    assert texts[plan.run / "hosts-0"] == "g1\ng1\ng1\n" and texts[plan.run / "hosts-1"] == "c1\nc1\nc2\nc2\n"


def test_probe_command_selects_the_host(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    srun = launcher(job, HETEROGENEOUS, "MPICH", monkeypatch)
    assert srun.ask("g1", ANSWER)[1] == "--het-group=0" and srun.ask("c2", ANSWER)[1] == "--het-group=1"
    assert "--nodelist=c2" in srun.ask("c2", ANSWER)
    assert launcher(job, HOMOGENEOUS, "MPICH", monkeypatch).ask("n2", ANSWER)[1] == "-N1"
    assert launcher(job, HOMOGENEOUS, "MPICH", monkeypatch, with_="mpirun").ask("n2", ANSWER)[1:3] == ["-hosts", "n2"]


def test_a_trainer_leaves_a_cpu_to_its_receive_thread(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, {}, {"OMP_NUM_THREADS": "3"})
    threads = {
        role: program.environment.get("OMP_NUM_THREADS") for role, program in with_threads(plan, 8).programs.items()
    }
    assert threads["trainer"] == "7" and threads["solver"] == "1"
    assert with_threads(plan, 1).programs["trainer"].environment["OMP_NUM_THREADS"] == "1"
    own = dataclasses.replace(plan, programs={**plan.programs, "trainer": Program(("sh",))})
    assert with_threads(own, 8).programs["trainer"].environment == {}
