"""Which transports exist and which are used, from a made-up /sys and /proc."""

import os
from pathlib import Path

import pytest

from mpidata.mpi.mpi_name import MpiName
from mpidata.mpi.network import Fabric, Usage, find_fabrics, look_at_process, slower_than_it_could_be

OPEN_MPI, MPICH = MpiName("Open MPI", "5.0.11"), MpiName("MPICH", "5.0.2")
SHARED, TCP, VERBS = Usage(shared_memory=True), Usage(), Usage(("/dev/infiniband/uverbs0",), True)
INFINIBAND = [Fabric("InfiniBand mlx5_0 (100 Gb/sec (4X EDR))")]


def adapter(sys: Path, name: str, state: str, layer: str = "InfiniBand", rate: str = "100 Gb/sec (4X EDR)") -> None:
    port = sys / "class" / "infiniband" / name / "ports" / "1"
    port.mkdir(parents=True)
    for file, text in {"state": state, "link_layer": layer, "rate": rate}.items():
        (port / file).write_text(f"{text}\n")


def test_adapters_in_sys_are_found_as_fabrics(tmp_path: Path) -> None:
    assert find_fabrics(tmp_path) == []
    adapter(tmp_path, "mlx5_0", "4: ACTIVE")
    adapter(tmp_path, "mlx5_1", "1: DOWN")
    adapter(tmp_path, "mlx5_2", "4: ACTIVE", "Ethernet", "25 Gb/sec (1X EDR)")
    adapter(tmp_path, "hfi1_0", "4: ACTIVE")
    (tmp_path / "class" / "cxi" / "cxi0").mkdir(parents=True)
    assert find_fabrics(tmp_path) == [
        Fabric("Omni-Path hfi1_0 (100 Gb/sec (4X EDR))"),
        Fabric("InfiniBand mlx5_0 (100 Gb/sec (4X EDR))"),
        Fabric("InfiniBand mlx5_1", active=False),
        Fabric("RoCE mlx5_2 (25 Gb/sec (1X EDR))"),
        Fabric("Slingshot cxi0"),
    ]


@pytest.mark.parametrize(
    "line, shared",
    [
        ("7f0 rw-s 0 00:01 7 /dev/shm/sm_segment.vm.0.ef160001.0", True),
        ("7f0 rw-s 0 00:01 7 /dev/shm/ucx_shm_posix_51df7446 (deleted)", True),
        ("7f0 rw-s 0 00:01 7 /SYSV00000000 (deleted)", True),
        ("7f0 rw-s 0 00:01 7 /tmp/ompi.1/1/pmix-gds-shmem2.vm", False),
        ("7f0 r--p 0 00:01 7 /usr/lib/libmpich.so.12", False),
    ],
)
def test_network_devices_and_shared_memory_of_a_process_are_found(tmp_path: Path, line: str, shared: bool) -> None:
    (tmp_path / "fd").mkdir()
    targets = ["/dev/infiniband/uverbs0", "/dev/cxi1", "/dev/null", "socket:[7]", "/dev/infiniband/uverbs0"]
    for number, target in enumerate(targets):
        os.symlink(target, tmp_path / "fd" / str(number))
    (tmp_path / "maps").write_text(f"{line}\n7f1 rw-p 0 00:00 0\n")
    assert look_at_process(tmp_path) == Usage(("/dev/cxi1", "/dev/infiniband/uverbs0"), shared)


def test_best_available_transport_is_not_reported() -> None:
    assert slower_than_it_could_be(SHARED, INFINIBAND, one_host=True, spawned=False, mpi=OPEN_MPI) == []
    assert slower_than_it_could_be(VERBS, INFINIBAND, one_host=False, spawned=False, mpi=OPEN_MPI) == []
    assert slower_than_it_could_be(TCP, [], one_host=False, spawned=False, mpi=OPEN_MPI) == []
    down = [Fabric("InfiniBand mlx5_0", active=False)]
    assert slower_than_it_could_be(TCP, down, one_host=False, spawned=False, mpi=OPEN_MPI) == []
    assert slower_than_it_could_be(SHARED, [], one_host=True, spawned=True, mpi=MPICH) == []


def test_transport_slower_than_available_is_reported() -> None:
    (fabric,) = slower_than_it_could_be(SHARED, INFINIBAND, one_host=False, spawned=False, mpi=OPEN_MPI)
    assert "InfiniBand mlx5_0" in fabric and "Open MPI 5.0.11 does not use" in fabric and "docs/fabric.md" in fabric
    (memory,) = slower_than_it_could_be(TCP, [], one_host=True, spawned=False, mpi=MPICH)
    assert "do not share memory: MPICH 5.0.2 sends their data over TCP" in memory
    (spawned,) = slower_than_it_could_be(SHARED, [], one_host=True, spawned=True, mpi=OPEN_MPI)
    assert "Spawned groups use TCP" in spawned
