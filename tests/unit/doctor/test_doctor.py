"""How the doctor judges the results of its probes, and how it shows them."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from launch_job import write_job
from rich.console import Console

from mpidata.config import load_job
from mpidata.doctor import Finding, machine, mpi, nodes, ranks
from mpidata.doctor import job as jobs
from mpidata.doctor.finding import as_json, show
from mpidata.doctor.ranks import MARK, read
from mpidata.launch.batch.allocation import Allocation, Node
from mpidata.mpi.mpi_name import MpiName
from mpidata.mpi.network import Fabric, Usage
from mpidata.native.linked_mpi import INSTALL_ANEW
from mpidata.run.plan import Plan

FIVE, FOUR, MPICH = MpiName("Open MPI", "5.0.11"), MpiName("Open MPI", "4.1.4"), MpiName("MPICH", "5.0.2")
INFINIBAND = [Fabric("InfiniBand mlx5_0")]
UNREACHABLE = "[vm] Unable to find reachable pairing between local and remote interfaces\nterminated by prterun\n"
MPIRUN = Path("/mpi/bin/mpirun")
FIGURES = {"mb_per_s": 5000.0, "us": 0.5}


@pytest.mark.parametrize(
    "finding, state, words",
    [
        (mpi.agreement(FIVE, FIVE, FIVE), "ok", ["libmpidata Open MPI 5.0.11"]),
        (mpi.agreement(FIVE, FOUR, FIVE), "failed", ["mpi4py Open MPI 4.1.4", INSTALL_ANEW, "--no-binary mpi4py"]),
        (mpi.agreement(MPICH, MPICH, FIVE), "failed", ["mpirun of MPICH 5.0.2 to PATH"]),
        (mpi.agreement(FIVE, None, None), "ok", ["mpi4py ?"]),
        (mpi.on_path(MPIRUN, FIVE, FIVE, MPIRUN), "ok", ["/mpi/bin/mpirun"]),
        (mpi.on_path(Path("/usr/bin/mpirun"), MPICH, FIVE, MPIRUN), "warning", ["MPICH 5.0.2", "By hand write /mpi"]),
        (mpi.pair(None, "", MPIRUN), "failed", ["did not answer within 20 s", "-n 2 hostname"]),
        (mpi.pair(None, "a\nno slots\n", MPIRUN), "failed", ["no slots"]),
        (mpi.pair({"size": 1, "mpi": "MPICH"}, "", MPIRUN), "failed", ["size 1", "does not belong"]),
        (mpi.pair({"size": 2, "seconds": 1.0}, "", MPIRUN), "ok", ["1.0 s"]),
        (mpi.threads(3), "ok", ["MPI_THREAD_MULTIPLE"]),
        (mpi.threads(1), "failed", ["MPI_THREAD_FUNNELED", "MPI_THREAD_MULTIPLE"]),
        (mpi.ulfm(FIVE, True, False), "ok", ["survives"]),
        (mpi.ulfm(MPICH, False, False), "warning", ["--restarts 3"]),
        (mpi.spawn({"spawned": True, "seconds": 0.1}, "", True), "ok", ["0.10 s"]),
        (mpi.spawn({"spawned": False, "error": "not here"}, "", True), "failed", ["not here", "start: split"]),
        (mpi.spawn(None, "", False), "warning", ["no answer within 20 s"]),
        (mpi.spawn(None, UNREACHABLE, True), "failed", ["no common network", "OMPI_MCA_btl_tcp_disable_family=6"]),
        (machine.between_ranks(Usage(shared_memory=True), FIGURES), "ok", ["shared memory: 5000 MB/s"]),
        (machine.between_ranks(Usage(), FIGURES), "warning", ["TCP", "OMPI_MCA_btl"]),
        (machine.between_hosts(Usage(("/dev/infiniband/uverbs0",)), INFINIBAND, FIVE, True), "ok", ["uverbs0"]),
        (machine.between_hosts(Usage(), INFINIBAND, FIVE, True), "warning", ["mlx5_0", "fault_tolerance: false"]),
        (machine.between_hosts(Usage(), [Fabric("InfiniBand x", False)], FIVE, True), "warning", ["no link", "cable"]),
        (machine.between_hosts(Usage(), [], FIVE, True), "warning", ["TCP"]),
        (machine.slurm(None, FIVE), "absent", ["no srun"]),
        (
            machine.slurm("MPI plugin types are...\n\tnone\n\tpmi2\n\tpmix\nspecific: pmix_v4", FIVE),
            "ok",
            ["pmi2, pmix"],
        ),
        (machine.slurm("MPI plugin types are...\n\tnone\n\tpmi2\n", FIVE), "warning", ["--mpi=pmix", "its mpirun"]),
        (machine.slurm("srun: fatal: no cluster\n", FIVE), "absent", ["no cluster"]),
        (machine.gpu(None), "failed", ["import torch"]),
        (machine.gpu({"gpus": [], "torch": "2", "driver": False}), "absent", ["none"]),
        (machine.gpu({"gpus": [], "torch": "2+cpu", "driver": True}), "warning", ["CUDA"]),
        (machine.gpu({"gpus": ["H200"], "torch": "2", "error": ""}), "ok", ["H200"]),
        (machine.gpu({"gpus": ["H200"], "torch": "2", "error": "out of memory"}), "failed", ["pinned", "nvidia-smi"]),
        (machine.locked_memory(None, INFINIBAND), "ok", ["unlimited"]),
        (machine.locked_memory(8 << 20, []), "ok", ["8 MiB"]),
        (machine.locked_memory(8 << 20, INFINIBAND), "warning", ["memlock unlimited"]),
        (machine.shared_memory(None), "warning", ["tmpfs"]),
        (machine.shared_memory(64 << 20), "warning", ["--shm-size"]),
        (machine.shared_memory(8 << 30), "ok", ["8.0 GiB"]),
    ],
)
def test_probe_results_give_the_expected_state_and_fix(finding: Finding, state: str, words: list[str]) -> None:
    assert finding.state == state
    for word in words:
        assert word in f"{finding.found} {finding.fix}"
    assert finding.fix or state in ("ok", "absent") or "between hosts" in finding.check


def test_slots_check_compares_ranks_with_the_cpus(tmp_path: Path) -> None:
    job = load_job(write_job(tmp_path))  # 2 trainers and 4 solvers
    plan = Plan.of(job, tmp_path)
    assert jobs.slots(job, plan, 8, None).state == "ok"
    warning = jobs.slots(job, plan, 2, None)
    assert warning.state == "warning" and warning.fix.endswith("To run faster, lower solvers.groups or trainers.ranks.")
    assert jobs.slots(job, plan, 2, Allocation("Slurm job 7", ((Node("n1", 2), Node("n2", 4)),))).state == "ok"
    few = jobs.slots(job, plan, 2, Allocation("Slurm job 7", ((Node("n1", 2), Node("n2", 3)),)))
    assert few.state == "failed" and "have 5 CPUs, but the job needs 6" in few.fix


def test_slots_count_inference_ranks_and_learners(tmp_path: Path) -> None:
    answers = ["inference={function: 'net:answer', ranks: 2, spares: 1}"]
    (tmp_path / "net.py").write_text("def answer(inputs):\n    pass\n")
    learns = ["parameters.sampler=breed", "parameters.learner_rank=true", "parameters.learner_spares=1"]
    job = load_job(write_job(tmp_path), [*answers, *learns])
    found = jobs.slots(job, Plan.of(job, tmp_path), 2, None)
    assert found.found == "12 ranks, 2 cores on this host", found
    assert found.fix.endswith("To run faster, lower solvers.groups or inference.ranks or trainers.ranks.")


HERE = {"Python": "3.12.1", "mpidata": "1.0"}
TOLD: dict[str, Any] = {"environment": HERE, "missing": [], "folders": {"/home": "", "/scratch": ""}}
OLD = TOLD | {"environment": HERE | {"mpidata": "0.9"}, "missing": ["/usr/bin/solver"]}
LOCAL = TOLD | {"folders": {"/home": "", "/scratch": "is another folder, not shared"}}
NODES = ["n1", "n2", "n3"]
JOINED = {"size": 3, "seconds": 1.5}


@pytest.mark.parametrize(
    ("told", "alive", "world", "failed"),
    [
        ([TOLD, TOLD, TOLD], [], JOINED, []),
        ([], ["n1", "n3"], None, ["no program starts on n2"]),
        ([TOLD, None, TOLD], ["n2"], None, [f"{sys.executable} does not run on n2"]),
        ([TOLD, TOLD, OLD], [], JOINED, ["mpidata is 0.9, but 1.0 here: n3", "solver is not an executable file: n3"]),
        ([TOLD, LOCAL, LOCAL], [], JOINED, ["/scratch is another folder, not shared: n2, n3"]),
        ([TOLD, TOLD, TOLD], [], None, ["it does not connect them"]),
        ([TOLD, TOLD, TOLD], [], {"size": 1, "seconds": 0.1}, ["it does not connect them"]),
    ],
)
def test_failures_of_allocated_nodes_are_named(
    told: list[Any], alive: list[str], world: dict[str, Any] | None, failed: list[str]
) -> None:
    each = {name: node for name, node in zip(NODES, told, strict=False) if node is not None}
    findings = nodes.judge(NODES, each, set(alive), world, HERE, "a\nno route to host\n")
    found = [finding for finding in findings if finding.state == "failed"]
    assert len(found) == len(failed), findings
    for finding, words in zip(found, failed, strict=True):
        assert words in finding.found and finding.fix


def test_folder_problems_on_a_node_are_reported(tmp_path: Path) -> None:
    (tmp_path / "mark").touch()
    assert ranks._problem(tmp_path / "mark") == ""
    assert ranks._problem(tmp_path / "gone" / "mark") == "does not exist"
    assert ranks._problem(tmp_path / "other") == "is another folder, not shared"
    assert ranks._problem(Path("/proc/self/status")) == "cannot be written (No such file or directory)"


def test_findings_are_shown_as_a_table_and_as_json() -> None:
    findings = [Finding("a", "ok", "fine"), Finding("b", "failed", "bad", "Mend it.")]
    console = Console(record=True, width=60, file=open("/dev/null", "w"))
    show(findings, console)
    lines = [line.split() for line in console.export_text().splitlines()]
    assert lines == [["a", "ok", "fine"], ["b", "failed", "bad"], ["Mend", "it."]]
    report = json.loads(as_json(findings))
    assert report["ok"] is False and report["checks"][1]["fix"] == "Mend it."
    assert json.loads(as_json(findings[:1]))["ok"] is True


def test_report_of_a_process_is_found_among_other_output() -> None:
    assert read(f'mpirun: a word\nx {MARK}{{"size": 2}}\n') == {"size": 2}
    assert read(f"{MARK}no json") is None and read("") is None
    assert read(f'{MARK}{{"rank": 0}}\n{MARK}{{"world": 3}}\n', "world") == 3
