"""What the doctor makes of what its probes have found, and how it shows that."""

import json
from pathlib import Path

import pytest
from rich.console import Console

from mpidata.doctor import Finding, job, machine, mpi
from mpidata.doctor.finding import as_json, show
from mpidata.doctor.ranks import MARK, read
from mpidata.mpi_name import MpiName
from mpidata.transport import Fabric, Usage

FIVE, FOUR, MPICH = MpiName("Open MPI", "5.0.11"), MpiName("Open MPI", "4.1.4"), MpiName("MPICH", "5.0.2")
INFINIBAND = [Fabric("InfiniBand mlx5_0")]
MPIRUN = Path("/mpi/bin/mpirun")
FIGURES = {"mb_per_s": 5000.0, "us": 0.5}


@pytest.mark.parametrize(
    "finding, state, words",
    [
        (mpi.agreement(FIVE, FIVE, FIVE), "ok", ["libmpidata Open MPI 5.0.11"]),
        (mpi.agreement(FIVE, FOUR, FIVE), "failed", ["mpi4py Open MPI 4.1.4", "MPICC", "--no-binary mpi4py"]),
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
        (mpi.ulfm(FIVE, True, False), "ok", ["outlives"]),
        (mpi.ulfm(MPICH, False, False), "warning", ["--restarts 3"]),
        (mpi.spawn({"spawned": True, "seconds": 0.1}, "", True), "ok", ["0.10 s"]),
        (mpi.spawn({"spawned": False, "error": "not here"}, "", True), "failed", ["not here", "start: split"]),
        (mpi.spawn(None, "", False), "warning", ["no answer within 20 s"]),
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
def test_a_check(finding: Finding, state: str, words: list[str]) -> None:
    assert finding.state == state
    for word in words:
        assert word in f"{finding.found} {finding.fix}"
    assert finding.fix or state in ("ok", "absent") or "between hosts" in finding.check


class _Plan:
    world, groups, ranks_per_group, start = 7, 4, 1, "split"


def test_slots() -> None:
    plan = _Plan()
    assert job.slots(plan, 8, {}).state == "ok"  # type: ignore[arg-type]
    assert job.slots(plan, 2, {}).state == "warning"  # type: ignore[arg-type]
    assert job.slots(plan, 2, {"SLURM_NTASKS": "7"}).state == "ok"  # type: ignore[arg-type]
    few = job.slots(plan, 2, {"SLURM_NTASKS": "6"})  # type: ignore[arg-type]
    assert few.state == "failed" and "--ntasks=7" in few.fix


def test_how_it_is_shown() -> None:
    findings = [Finding("a", "ok", "fine"), Finding("b", "failed", "bad", "Mend it.")]
    console = Console(record=True, width=60, file=open("/dev/null", "w"))
    show(findings, console)
    lines = [line.split() for line in console.export_text().splitlines()]
    assert lines == [["a", "ok", "fine"], ["b", "failed", "bad"], ["Mend", "it."]]
    report = json.loads(as_json(findings))
    assert report["ok"] is False and report["checks"][1]["fix"] == "Mend it."
    assert json.loads(as_json(findings[:1]))["ok"] is True


def test_what_a_process_reports_is_found_among_other_output() -> None:
    assert read(f'mpirun: a word\nx {MARK}{{"size": 2}}\n') == {"size": 2}
    assert read(f"{MARK}no json") is None and read("") is None
