"""Replaces ssh between the hosts of these tests: agent.py HOST COMMAND...

Like ssh, it runs one shell line in a clean environment, returns its exit status, and hangs if the other host does not
answer. MPIDATA_TEST_HOSTS names the folder of the hosts' sockets.
"""

import array
import ctypes
import json
import os
import signal
import socket
import sys

_PR_SET_PDEATHSIG = 1


def run_on(folder: str, host: str, command: list[str], cwd: str, environment: dict[str, str]) -> int:
    """Run a command on a host with the output of this process; return its exit status."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        try:
            connection.connect(f"{folder}/{host}.sock")
            request = json.dumps({"command": command, "cwd": cwd, "environment": environment}).encode()
            outputs = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [1, 2]))]
            connection.sendmsg([request], outputs)
            answer = connection.recv(64)
        except OSError:
            answer = b""
        while not answer:  # the host is switched off
            signal.pause()
    status = int(answer)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    clean = {name: os.environ[name] for name in ("HOME", "MPIDATA_TEST_HOSTS") if name in os.environ}
    clean |= {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "TMPDIR": "/dev/shm"}
    # mpirun does not quote, so it cannot start daemons from a path with blanks, which a clone's path may have.
    line = ["sh", "-c", " ".join(sys.argv[2:]).replace(sys.prefix, sys.prefix.replace(" ", "\\ "))]
    sys.exit(run_on(os.environ["MPIDATA_TEST_HOSTS"], sys.argv[1], line, clean.get("HOME", "/"), clean))
