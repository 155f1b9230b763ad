"""A separate host on this machine, in namespaces with its own name, network, processes and shared memory.

host.py NAME SOCKET HOSTS: `unshare` starts it in new namespaces, where it runs the commands that agent.py sends, like
sshd.
"""

import array
import contextlib
import fcntl
import json
import os
import selectors
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

_SIOCGIFFLAGS, _IFF_RUNNING = 0x8913, 0x40


def make_host(name: str, hosts: str) -> None:
    """Set up the new namespaces as a host."""
    socket.sethostname(name)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/dev/shm"], check=True)
    subprocess.run(["mount", "--bind", hosts, "/etc/hosts"], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def is_connected() -> bool:
    """Return whether the network cable is plugged in."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            answer = fcntl.ioctl(any_socket, _SIOCGIFFLAGS, struct.pack("16sh14x", b"eth0", 0))
        except OSError:
            return False
    return bool(struct.unpack("16sh14x", answer)[1] & _IFF_RUNNING)


def start(connection: socket.socket) -> int:
    """Run the command of a request, with the output that it passed; return the process id."""
    size = array.array("i").itemsize
    data, ancillary, _, _ = connection.recvmsg(1 << 20, socket.CMSG_SPACE(2 * size))
    outputs = array.array("i", ancillary[0][2])
    request = json.loads(data)
    process = subprocess.Popen(
        request["command"],
        cwd=request["cwd"],
        env=request["environment"],
        stdin=subprocess.DEVNULL,
        stdout=outputs[0],
        stderr=outputs[1],
        start_new_session=True,
    )
    for output in outputs:
        os.close(output)
    process.returncode = 0  # the loop below reaps it, like the host's orphans
    return process.pid


def serve(path: str) -> None:
    """Run commands until the host is switched off."""
    running: dict[int, socket.socket] = {}
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener, selectors.DefaultSelector() as selector:
        listener.bind(path)
        listener.listen()
        selector.register(listener, selectors.EVENT_READ)
        selector.register(ended, selectors.EVENT_READ)
        unanswered = []
        while True:
            for key, _ in selector.select():
                if key.fileobj is listener:
                    connection = listener.accept()[0]
                    if is_connected():
                        running[start(connection)] = connection
                    else:
                        unanswered.append(connection)
                else:
                    os.read(ended, 4096)
            with contextlib.suppress(ChildProcessError):
                while (found := os.waitpid(-1, os.WNOHANG)) != (0, 0):
                    client = running.pop(found[0], None)
                    if client is not None and is_connected():
                        with contextlib.suppress(OSError):
                            client.send(str(os.waitstatus_to_exitcode(found[1])).encode())
                        client.close()
                    elif client is not None:
                        unanswered.append(client)


if __name__ == "__main__":
    make_host(sys.argv[1], sys.argv[3])
    Path(sys.argv[2]).unlink(missing_ok=True)
    serve(sys.argv[2])
