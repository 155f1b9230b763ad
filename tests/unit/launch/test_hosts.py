"""Jobs on hosts that the job file names, and continuing without a lost host. Needs no other hosts."""

import dataclasses
import os
import shlex
import socket
from pathlib import Path

import pytest

from mpidata.config import Job, load_job
from mpidata.errors import JobFileError, LaunchError
from mpidata.launch.batch.allocation import named_hosts
from mpidata.launch.batch.placement import Layout
from mpidata.launch.starting import hosts
from mpidata.launch.starting import launcher as module
from mpidata.launch.starting.command import silence_environment
from mpidata.launch.starting.hosts import ANSWER, fewer, on_hosts_left, silent, working
from mpidata.launch.starting.launcher import Launcher, find_launcher
from mpidata.launch.watching import connections
from mpidata.launch.watching.connections import Connections
from mpidata.mpi.mpi_name import MpiName

JOB = """
trainers: {ranks: 2, program: ["true"], per_node: 1}
solvers: {groups: 4, program: ["true"], spares: 1}
parameters: {count: 2, space: {a: [0, 1]}}
fields: {u: {dtype: float32, shape: [2]}}
launch: {hosts: [n1:4, n2:4, n3:2], host_timeout_s: 12}
"""


@pytest.fixture
def job(tmp_path: Path) -> Job:
    (tmp_path / "job.yaml").write_text(JOB)
    return load_job(str(tmp_path / "job.yaml"))


@pytest.fixture
def launcher(job: Job, monkeypatch: pytest.MonkeyPatch) -> Launcher:
    monkeypatch.setattr(module, "linked_mpi", lambda: MpiName("Open MPI", "5"))
    monkeypatch.setattr(module, "find_mpirun", lambda: Path("/mpi/mpirun"))
    return find_launcher(job, {})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("[n1]", r"'launch.hosts\[0\]' is 'n1'.*how many CPUs: node1:8"),
        ("[n1:0]", "is 'n1:0'"),
        ("[n1:2, n1:4]", r"'launch.hosts\[1\]' names n1 again"),
        ("n1:2", "Write a list"),
    ],
)
def test_invalid_hosts_are_refused(job: Job, tmp_path: Path, value: str, message: str) -> None:
    with pytest.raises(JobFileError, match=message):
        load_job(str(tmp_path / "job.yaml"), [f"launch.hosts={value}"])


def test_ranks_go_to_the_named_hosts(launcher: Launcher) -> None:
    assert launcher.placement is not None and not launcher.is_local and launcher.trainers_here == 1
    assert launcher.placement.hosts == ("n1", "n1", "n2", "n3", "n3", "n1", "n2", "n1")
    variables = launcher.environment(None, {})
    assert variables["PRTE_MCA_oob_tcp_keepalive_time"] == "7" and launcher.silence_s == 12.0
    assert "OMPI_MCA_btl_sm_backing_directory" not in variables


def test_hosts_and_slurm_exclude_each_other(job: Job, launcher: Launcher) -> None:
    allocation = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n1", "SLURM_JOB_CPUS_PER_NODE": "9"}
    with pytest.raises(LaunchError, match="'launch.hosts' names hosts, but this is Slurm job 7"):
        find_launcher(job, allocation)
    by_srun = job.model_copy(update={"launch": job.launch.model_copy(update={"with_": "srun"})})
    with pytest.raises(LaunchError, match="'launch.hosts' is for mpirun"):
        find_launcher(by_srun, {})


def test_hosts_with_too_few_cpus_are_refused(job: Job, launcher: Launcher) -> None:
    few = job.model_copy(update={"launch": job.launch.model_copy(update={"hosts": ("n1:1", "n2:1")})})
    with pytest.raises(LaunchError, match=r"have 2 CPUs, but the job needs 7 .*Key 'launch.hosts'. Add hosts or CPUs"):
        find_launcher(few, {})


def test_keepalive_fits_the_timeout_and_keeps_user_settings() -> None:
    for timeout in (3.0, 12.0, 30.0, 600.0):
        values = [int(value) for value in silence_environment(timeout, {}).values()]
        assert min(values) >= 1 and values[0] + values[1] * values[2] <= max(timeout, 6)
    assert silence_environment(12.0, {"PRTE_MCA_oob_tcp_keepalive_time": "1"}).keys() == {
        "PRTE_MCA_oob_tcp_keepalive_intvl",
        "PRTE_MCA_oob_tcp_keepalive_probes",
    }


def test_unreachable_hosts_are_named_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "_ANSWER_S", 0.5)
    monkeypatch.setattr(hosts, "_END_S", 0.5)
    refuses, silent_one = ["sh", "-c", "echo ------; echo 'no route'; exit 213"], ["sh", "-c", "sleep 60 & wait"]
    lost = ["sh", "-c", f"{shlex.join(ANSWER)}; sleep 60"]  # a launcher that misses the end
    commands = {
        "up": ANSWER,
        "misses": lost,
        "ended": ["true"],
        "refuses": refuses,
        "silent": silent_one,
    }
    assert silent(commands, os.environ) == {
        "refuses": "Starting a program on refuses failed with status 213: no route.",
        "silent": "silent did not answer within 0.5 s.",
    }


def left(layout: Layout, *names: str) -> tuple[int, int, int, int]:
    """Return the groups, spare groups, loaders and spare loaders that fit on these hosts."""
    less = fewer(layout, named_hosts(names))
    groups, loaders = working(less)
    return groups, less.spares, loaders, less.loader_spares


def test_groups_are_reduced_if_hosts_have_less_room() -> None:
    layout = Layout(trainers=2, groups=5, ranks_per_group=1, per_node=1, spares=1)
    assert left(layout, "n1:4", "n2:4") == (4, 1, 0, 0)
    assert left(layout, "n1:3", "n2:2") == (3, 0, 0, 0)  # spares are dropped first
    assert left(dataclasses.replace(layout, groups=7, spares=3), "n1:3", "n2:3") == (4, 0, 0, 0)
    with pytest.raises(LaunchError, match="room for 1 of 2 trainers"):
        fewer(layout, named_hosts(["n1:9"]))
    later = Layout(trainers=1, groups=0, ranks_per_group=2, later=3)
    assert left(later, "n1:6") == (2, 0, 0, 0)


def test_loaders_are_reduced_if_hosts_have_less_room() -> None:
    alone = Layout(trainers=1, groups=0, ranks_per_group=1, loaders=5, loader_spares=1)
    assert left(alone, "n1:7") == (0, 0, 4, 1)
    assert left(alone, "n1:5") == (0, 0, 4, 0)
    assert left(alone, "n1:4") == (0, 0, 3, 0)
    assert left(alone, "n1:2") == (0, 0, 1, 0)
    with pytest.raises(LaunchError, match="but the job needs"):
        fewer(alone, named_hosts(["n1:1"]))
    both = Layout(trainers=1, groups=2, ranks_per_group=2, loaders_later=6)
    assert left(both, "n1:10") == (2, 0, 5, 0) and left(both, "n1:4") == (1, 0, 1, 0)


def test_job_continues_on_the_remaining_hosts(launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {}

    def answer(commands: dict[str, list[str]], environ: object) -> dict[str, str]:
        asked.update(commands)
        return {name: f"{name} is silent." for name in lost}

    monkeypatch.setattr(hosts, "silent", answer)
    lost: list[str] = []
    assert on_hosts_left(launcher, {}) == (launcher, [])
    assert asked["n2"][:3] == ["/mpi/mpirun", "--host", "n2:1"]
    lost = ["n2"]
    later, sentences = on_hosts_left(launcher, {})
    assert (later.job.solvers.groups, later.job.solvers.spares) == (4, 0)
    assert set(later.placement.hosts if later.placement else ()) == {"n1", "n3"}
    assert sentences == [
        "Without n2, which cannot be reached.",
        "n2 is silent.",
        "There is room for 0 of 1 spare groups.",
    ]
    lost = ["n3", "n2"]
    with pytest.raises(LaunchError, match=r"Without n2, n3, .*n2 is silent. n3 is silent. .*room for 1 of 2 trainers"):
        on_hosts_left(launcher, {})


def test_connections_of_a_process_are_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        number = str(os.fstat(client.fileno()).st_ino)
        assert number in set(connections._sockets(os.getpid()))
        monitored = Connections(os.getpid(), 0.0)
        assert monitored.lost_host() is None


def test_unacknowledged_connection_names_the_lost_host(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(connections, "_sockets", lambda process: ["7", "8"])
    monkeypatch.setattr(connections, "_retransmitting", lambda process: again)
    monitored = Connections(1, 5.0, clock=lambda: now[0])
    seen = []
    for now[0], numbers in ((0.0, "7"), (4.0, "7"), (4.5, ""), (5.0, "7"), (9.9, "79"), (10.0, "79")):
        again = [(number, "0200007F") for number in numbers]  # 9 is not a socket of this process
        seen.append(monitored.lost_host())
    assert seen[:-1] == [None] * 5 and seen[-1] in ("127.0.0.2", "localhost")


def test_hex_addresses_are_resolved_to_host_names() -> None:
    name = socket.gethostbyaddr("127.0.0.1")[0]
    assert connections._name("0100007F") == name
    assert connections._name("0000000000000000FFFF00000100007F") == name
