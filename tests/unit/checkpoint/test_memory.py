from pathlib import Path

import pytest
from fake_library import make_plan

from mpidata.checkpoint.memory import available_bytes, check_memory, sample_bytes
from mpidata.errors import LaunchError
from mpidata.run.plan import Field

MIB = 1 << 20


def plan(every_s: float = 300.0):
    field = Field("u", "float32", (1 << 18,))
    return make_plan(fields=(field,), capacity=100, checkpoint_every_s=every_s)


def test_sample_bytes_are_the_field_bytes_plus_a_small_overhead() -> None:
    assert MIB < sample_bytes(plan()) < MIB + 400


def test_buffers_larger_than_the_memory_are_refused() -> None:
    with pytest.raises(
        LaunchError, match=r"200.\d MiB for 2 buffers of 100 samples, but 190.0 MiB is available.*--mem.*capacity"
    ):
        check_memory(plan(), 2, 190 * MIB)
    assert check_memory(plan(), 2, 500 * MIB) == []
    assert check_memory(plan(), 2, None) == []


def test_checkpoints_that_may_need_twice_the_buffer_memory_give_a_warning() -> None:
    (warning,) = check_memory(plan(), 2, 300 * MIB)
    assert "up to 400.1 MiB may be needed" in warning and "300.0 MiB is available" in warning
    assert check_memory(plan(every_s=0.0), 2, 300 * MIB) == []


def test_available_memory_is_the_least_of_machine_and_control_groups(tmp_path: Path) -> None:
    proc, cgroup = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (cgroup / "job" / "step").mkdir(parents=True)
    assert available_bytes(proc, cgroup, {}) is None
    (proc / "meminfo").write_text("MemTotal:  9000 kB\nMemAvailable:   8000 kB\n")
    assert available_bytes(proc, cgroup, {}) == 8000 * 1024
    (proc / "self" / "cgroup").write_text("0::/job/step\n")
    (cgroup / "job" / "step" / "memory.max").write_text("max\n")
    (cgroup / "job" / "memory.max").write_text("5000000\n")
    (cgroup / "job" / "memory.current").write_text("1000000\n")
    assert available_bytes(proc, cgroup, {}) == 4000000
    (cgroup / "job" / "memory.stat").write_text("anon 900000\ninactive_file 100000\nslab 5\n")
    assert available_bytes(proc, cgroup, {}) == 4100000  # cached files can be evicted


def test_control_groups_of_version_1_limit_the_available_memory(tmp_path: Path) -> None:
    proc, group = tmp_path / "proc", tmp_path / "cgroup" / "memory" / "slurm" / "job_7"
    (proc / "self").mkdir(parents=True)
    group.mkdir(parents=True)
    (proc / "self" / "cgroup").write_text("5:cpu,cpuacct:/slurm\n4:memory:/slurm/job_7/step_batch\n0::/\n")
    (group / "memory.limit_in_bytes").write_text("5000000\n")
    (group / "memory.usage_in_bytes").write_text("1000000\n")
    (group / "memory.stat").write_text("inactive_file 7\ntotal_inactive_file 200000\n")
    assert available_bytes(proc, tmp_path / "cgroup", {}) == 4200000


@pytest.mark.parametrize(
    ("variables", "mib"),
    [
        ({"SLURM_MEM_PER_NODE": "100"}, 100),
        ({"SLURM_MEM_PER_CPU": "30", "SLURM_CPUS_ON_NODE": "4"}, 120),
        ({"SLURM_MEM_PER_NODE": "0", "SLURM_CPUS_ON_NODE": "4"}, None),  # --mem=0: all memory of the node
        ({"SLURM_MEM_PER_CPU": "30"}, None),
    ],
)
def test_slurm_allocation_limits_the_available_memory(
    tmp_path: Path, variables: dict[str, str], mib: int | None
) -> None:
    found = available_bytes(tmp_path, tmp_path, variables)
    assert found == (None if mib is None else mib * MIB)


def test_available_memory_of_this_machine_is_positive() -> None:
    assert available_bytes() is None or available_bytes() > 0


def test_buffer_with_a_capacity_in_bytes_needs_that_many_bytes() -> None:
    of_bytes = make_plan(fields=(Field("u", "float32", ("nodes",)),), capacity=100 * MIB, capacity_in_bytes=1)
    with pytest.raises(LaunchError, match=r"200.0 MiB for 2 buffers of 100.0 MiB, but 190.0 MiB is available"):
        check_memory(of_bytes, 2, 190 * MIB)
    assert check_memory(of_bytes, 2, 500 * MIB) == []
