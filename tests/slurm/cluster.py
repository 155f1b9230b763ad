"""A real Slurm on one machine: `python tests/slurm/cluster.py FOLDER` starts one, and Ctrl-C ends it.

It runs munged, slurmctld and one slurmd per emulated node as children of this process, with all files in FOLDER. Each
node has its own host name and /dev/shm, so that MPI treats the nodes as different machines. Needs root.
"""

import contextlib
import ctypes
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TextIO

from waiting import wait_until

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scancel", "scontrol", "squeue", "sinfo")
NODES = 8
CPUS = min(os.cpu_count() or 1, 2)  # per node; not more than exist, because Open MPI checks
_PMIX = "/usr/lib/*/libpmix.so"  # without a version: Slurm loads it by this name

_CONFIGURATION = """\
ClusterName=mpidata
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
# A job that is requeued may start again after half of cred_expire.
AuthInfo=socket={box}/munge.socket,cred_expire=10
StateSaveLocation={box}/state
SlurmctldPidFile={box}/slurmctld.pid
SlurmctldLogFile={box}/log/slurmctld.log
SlurmdSpoolDir={box}/spool/%n
SlurmdPidFile={box}/slurmd-%n.pid
SlurmdLogFile={box}/log/slurmd-%n.log
# One for each node: the pmix plugin makes folders there that would be in one another's way.
TmpFS={box}/tmp/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
JobRequeue=1
KillWait=5
InactiveLimit=0
MinJobAge=3600
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
{nodes}
# A job in `urgent` takes the nodes of one in `main`, which gets its signal, has GraceTime seconds, and is requeued.
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=20
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
"""

# Gives a node its own host name, a table of all nodes' names, and shared memory, in separate namespaces.
_NODE = (
    'hostname "$1" && mount --bind "$2/hosts" /etc/hosts && mount -t tmpfs -o mode=1777 tmpfs /dev/shm'
    ' && exec slurmd -D -f "$SLURM_CONF" -N "$1"'
)


def missing() -> str | None:
    """Return what this machine lacks, or None."""
    if os.geteuid() != 0:
        return "a Slurm of its own needs root"
    for program in PROGRAMS:
        if shutil.which(program) is None:
            return f"{program} is not installed"
    if not list(Path("/").glob(_PMIX[1:])):
        return "libpmix-dev is not installed"
    tried = subprocess.run(
        ["unshare", "--uts", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/dev/shm"], capture_output=True
    )
    return None if tried.returncode == 0 else "a Slurm of its own needs the right to mount (CAP_SYS_ADMIN)"


class Cluster:
    """Starts the daemons on entry, and ends them and all jobs on exit."""

    def __init__(self, box: Path) -> None:
        self.box = box
        self._daemons: list[subprocess.Popen[bytes]] = []
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables for srun, sbatch and jobs."""
        return {
            "SLURM_CONF": str(self.box / "slurm.conf"),
            # The nodes communicate over the loopback, which Open MPI excludes by default.
            "OMPI_MCA_btl_tcp_if_include": "lo",
        }

    def __enter__(self) -> "Cluster":
        self._write()
        try:
            munge = [f"--{name}={self.box / file}" for name, file in _MUNGE.items()]
            self._start("munged", "--foreground", "--force", *munge)
            self._wait(lambda: (self.box / "munge.socket").exists(), "munged")
            self._start("slurmctld", "-D", "-f", str(self.box / "slurm.conf"))
            for node in range(1, NODES + 1):
                self._start_node(f"n{node}")
            self._wait(lambda: len(self.nodes("idle")) == NODES, "the nodes")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(subprocess.SubprocessError, OSError):
            self.cancel_all()
        for daemon in reversed(self._daemons):
            daemon.terminate()
        for daemon in reversed(self._daemons):
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self._end_steps()
        self._ports.close()

    def run(self, *command: str, timeout: float = 20) -> str:
        """Run one of Slurm's commands and return what it prints."""
        done = subprocess.run(
            command, env={**os.environ, **self.variables}, capture_output=True, text=True, timeout=timeout
        )
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
        return done.stdout

    def nodes(self, *states: str) -> list[str]:
        """Return the names of the nodes in one of these states."""
        try:
            lines = self.run("sinfo", "-h", "-N", "-p", "main", "-o", "%N %T").splitlines()
        except RuntimeError:
            return []  # slurmctld does not answer yet
        return [line.split()[0] for line in lines if line.split()[1] in states]

    def power_off(self, name: str) -> None:
        """Kill all processes of a node, and set it to down in Slurm at once."""
        daemon = self._nodes.pop(name)
        self._daemons.remove(daemon)
        space = os.readlink(f"/proc/{daemon.pid}/ns/uts")
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if os.readlink(entry / "ns" / "uts") == space:
                    os.kill(int(entry.name), signal.SIGKILL)
        daemon.wait()
        self.run("scontrol", "update", f"nodename={name}", "state=down", "reason=off")

    def take_for_lost(self, name: str) -> None:
        """Make Slurm treat a running node as lost until its slurmd reports again."""
        self.run("scontrol", "update", f"nodename={name}", "state=down", "reason=lost")

    def find_again(self) -> None:
        """Wait until all nodes are idle."""
        self._wait(lambda: len(self.nodes("idle")) == NODES, "the nodes", 60)

    def power_on(self, name: str) -> None:
        """Start a node that was switched off."""
        self._start_node(name)
        self._wait(lambda: len(self.nodes("idle")) == NODES, name)

    def cancel_all(self, timeout: float = 20) -> None:
        """Cancel all jobs, and wait until the nodes are free."""
        jobs = self.run("squeue", "-h", "-o", "%A").split()
        if jobs:
            self.run("scancel", *jobs)
        self._wait(lambda: not self.run("squeue", "-h", "-o", "%A").split(), "the end of the jobs", timeout)

    def _write(self) -> None:
        os.umask(0o022)  # munged refuses a socket in a folder that others may write to
        for name in ("state", "spool", "log", "tmp"):
            (self.box / name).mkdir(parents=True, exist_ok=True)
        key = self.box / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        port, self._ports = _free_ports(NODES + 1)
        nodes, hosts = "", Path("/etc/hosts").read_text() if Path("/etc/hosts").exists() else "127.0.0.1 localhost\n"
        for i in range(1, NODES + 1):
            nodes += f"NodeName=n{i} NodeHostname=n{i} NodeAddr=127.0.1.{i} Port={port + i} "
            nodes += f"CPUs={CPUS} RealMemory=1000\n"
            hosts += f"127.0.1.{i} n{i}\n"
            (self.box / "spool" / f"n{i}").mkdir(exist_ok=True)
            (self.box / "tmp" / f"n{i}").mkdir(exist_ok=True)
        (self.box / "hosts").write_text(hosts)
        host = socket.gethostname().partition(".")[0]
        (self.box / "slurm.conf").write_text(
            _CONFIGURATION.format(host=host, box=self.box, port=port, nodes=nodes.rstrip())
        )
        # Otherwise slurmd would look for cgroups, although nothing here uses them.
        (self.box / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        (self.box / "environment.sh").write_text(
            "".join(f"export {name}='{value}'\n" for name, value in self.variables.items())
        )

    def _start_node(self, name: str) -> None:
        self._start("unshare", "--uts", "--mount", "bash", "-c", _NODE, "slurmd", name, str(self.box))
        self._nodes[name] = self._daemons[-1]

    def _start(self, *command: str) -> None:
        with open(self.box / "log" / "daemons.log", "ab") as log:
            self._daemons.append(
                subprocess.Popen(
                    command,
                    env={**os.environ, **self.variables},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    preexec_fn=_end_with_parent,
                )
            )

    def _wait(self, what, name: str, timeout: float = 30) -> None:
        def told() -> str:
            logs = "".join(f"\n== {p.name}\n{p.read_text()[-1500:]}" for p in (self.box / "log").iterdir())
            return f"waited for {name} in vain; ended: {[d.args for d in self._daemons if d.poll() is not None]}{logs}"

        def ready() -> bool:
            assert all(daemon.poll() is None for daemon in self._daemons), told()
            return bool(what())

        wait_until(ready, timeout, every_s=0.1, told=told)

    def _end_steps(self) -> None:
        """Kill the daemons of steps that outlived those of their nodes."""
        mark = f"SLURM_CONF={self.box / 'slurm.conf'}".encode()
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (entry / "comm").read_text().strip() == "slurmstepd":
                    if mark in (entry / "environ").read_bytes().split(b"\0"):
                        os.kill(int(entry.name), signal.SIGKILL)


_MUNGE = {
    "socket": "munge.socket",
    "key-file": "munge.key",
    "pid-file": "munged.pid",
    "seed-file": "munge.seed",
    "log-file": "log/munged.log",
}


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGTERM, 0, 0, 0)


def _free_ports(count: int) -> tuple[int, TextIO]:
    """Return the first of `count` free adjacent ports below the system's range, and a lock to close after use."""
    for first in range(16800, 30000, count):
        taken = open(Path(tempfile.gettempdir()) / f"mpidata-slurm-{first}.lock", "w")  # others also search now
        with contextlib.ExitStack() as sockets, contextlib.suppress(OSError):
            fcntl.flock(taken, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for port in range(first, first + count):
                sockets.enter_context(socket.socket()).bind(("", port))
            return first, taken
        taken.close()
    raise RuntimeError("no free ports between 16800 and 30000")


def main() -> None:
    if problem := missing():
        sys.exit(f"{problem}. On Debian or Ubuntu, `make test-packages` as root installs what it needs.")
    box = Path(sys.argv[1]).resolve()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with Cluster(box), contextlib.suppress(KeyboardInterrupt):
        print(f"{NODES} nodes of {CPUS} CPUs. In another shell: . {box}/environment.sh", flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
