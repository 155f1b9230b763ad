"""Several hosts on one machine, connected by a network that can be cut. Needs root."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
from waiting import wait_until

_HERE = Path(__file__).parent
_NAMESPACES = ["--net", "--uts", "--ipc", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child"]


def missing() -> str | None:
    """Return what this machine lacks to run several hosts, or None."""
    if os.geteuid() != 0:
        return "hosts of their own need root"
    absent = [name for name in ("ip", "unshare", "nsenter") if shutil.which(name) is None]
    return f"hosts of their own need {', '.join(absent)}: install iproute2, util-linux" if absent else None


class Hosts:
    """Hosts node1, node2, ... on their own network, 10.77.0.0/24; they share all files except /dev/shm.

    Parameters
    ----------
    folder : Path
        Folder for sockets and files.
    count : int
        Number of hosts.
    """

    def __init__(self, folder: Path, count: int) -> None:
        self.folder = folder
        self.names = [f"node{i}" for i in range(1, count + 1)]
        self._started: list[subprocess.Popen[bytes]] = []
        self._pids: dict[str, int] = {}  # of the first process of each host
        self._switch = 0

    def __enter__(self) -> "Hosts":
        lines = [f"10.77.0.{i} {name}" for i, name in enumerate(self.names, 1)]
        (self.folder / "hosts").write_text("\n".join(["127.0.0.1 localhost", *lines, ""]))
        self._switch = self._start(["unshare", "--net", "sleep", "infinity"]).pid
        self._wait(lambda: os.readlink(f"/proc/{self._switch}/ns/net") != os.readlink("/proc/self/ns/net"), "a switch")
        self._on_switch("ip", "link", "add", "br0", "type", "bridge")
        self._on_switch("ip", "link", "set", "br0", "up")
        for name in self.names:
            self.power_on(name)
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._started):
            process.kill()
            process.wait()

    def power_on(self, name: str) -> None:
        """Start a host and plug it in."""
        path = self.folder / f"{name}.sock"
        path.unlink(missing_ok=True)
        program = [sys.executable, str(_HERE / "host.py"), name, str(path), str(self.folder / "hosts")]
        outer = self._start(["unshare", *_NAMESPACES, *program])
        self._wait(path.exists, name)
        pid = psutil.Process(outer.pid).children()[0].pid
        self._pids[name] = pid
        self._on_switch("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
        self._plug_in(name)

    def _plug_in(self, name: str) -> None:
        number = self.names.index(name) + 1
        self._on_switch("ip", "link", "set", name, "master", "br0")
        self._on_host(name, "ip", "addr", "add", f"10.77.0.{number}/24", "dev", "eth0")
        self._on_host(name, "ip", "link", "set", "eth0", "up")
        self.heal(name)

    def spoil(self, name: str, delay_ms: float, loss_percent: float, seed: int = 0) -> "subprocess.Popen[bytes]":
        """Make the line of a host slow and lossy, both ways; return a process that prints an x per lost frame."""
        self._on_switch("ip", "link", "delete", name)
        program = [sys.executable, str(_HERE / "relay.py"), str(self._pids[name]), str(self._switch), name]
        line = subprocess.Popen([*program, str(delay_ms), str(loss_percent), str(seed)], stdout=subprocess.PIPE)
        self._started.append(line)
        assert line.stdout is not None and line.stdout.readline() == b"up\n"
        self._plug_in(name)
        return line

    def cut(self, name: str) -> None:
        """Unplug a host; its processes continue."""
        self._on_switch("ip", "link", "set", name, "down")

    def heal(self, name: str) -> None:
        """Plug the host in again."""
        self._on_switch("ip", "link", "set", name, "up")

    def power_off(self, name: str) -> None:
        """Kill all processes of a host without notice to the others."""
        self.cut(name)
        os.kill(self._pids[name], 9)  # ends all processes in its PID namespace

    def processes(self, name: str) -> list[psutil.Process]:
        """Return all processes of a host except its first."""
        space = os.readlink(f"/proc/{self._pids[name]}/ns/pid")
        found = []
        for process in psutil.process_iter():
            try:
                if os.readlink(f"/proc/{process.pid}/ns/pid") == space and process.pid != self._pids[name]:
                    found.append(process)
            except OSError:
                continue
        return found

    def wait_until_empty(self, *names: str) -> None:
        """Wait until no process is left on the hosts."""

        def left() -> dict[str, list[psutil.Process]]:
            return {name: found for name in names if (found := self.processes(name))}

        wait_until(lambda: not left(), 5, every_s=0.1, told=lambda: f"still there: {left()}")

    def temporary_files(self, name: str) -> list[str]:
        """Return the files in a host's /dev/shm, its folder for temporary files."""
        return self.call(name, "find", "/dev/shm", "-mindepth", "1").splitlines()

    def call(self, name: str, *command: str) -> str:
        """Run a command with the files of a host; return its output."""
        inside = ["nsenter", "-t", str(self._pids[name]), "-m", *command]
        return subprocess.run(inside, check=True, capture_output=True, text=True).stdout

    def start(self, name: str, command: list[str], cwd: Path, environment: dict[str, str]) -> "subprocess.Popen[str]":
        """Start a command on a host; the returned process has its output and exit status."""
        request = self.folder / "request.json"
        variables = {**environment, **self.variables}
        request.write_text(json.dumps([str(self.folder), name, command, str(cwd), variables]))
        return subprocess.Popen(
            [sys.executable, str(_HERE / "on_host.py"), str(request)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    @property
    def agent(self) -> Path:
        """The command that replaces ssh; its path has no blanks, because mpirun splits it there."""
        command = self.folder / "agent"
        if not command.exists():
            command.write_text(f"#!/bin/sh\nexec '{sys.executable}' '{_HERE / 'agent.py'}' \"$@\"\n")
            command.chmod(0o755)
        return command

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables with which mpirun uses the hosts."""
        return {
            "TMPDIR": "/dev/shm",  # the only folder that the hosts do not share
            "MPIDATA_TEST_HOSTS": str(self.folder),
            "PRTE_MCA_plm_ssh_agent": str(self.agent),
        }

    def _start(self, command: list[str]) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        self._started.append(process)
        return process

    def _on_switch(self, *command: str) -> None:
        subprocess.run(["nsenter", "-t", str(self._switch), "-n", *command], check=True, capture_output=True)

    def _on_host(self, name: str, *command: str) -> None:
        subprocess.run(["nsenter", "-t", str(self._pids[name]), "-n", *command], check=True, capture_output=True)

    def _wait(self, condition: Callable[[], object], what: str) -> None:
        wait_until(condition, 10, told=lambda: f"{what} did not come up within 10 s")
