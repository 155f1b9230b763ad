"""Whether the launcher's connections to other hosts are alive: it may wait 15 minutes for a dead one."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

__all__ = ["Connections"]

_FEWEST = 3  # retransmissions: with fewer, the network may only be slow
_SOCKET = "socket:["


class Connections:
    """Watches the TCP connections of a process and its children for data that the peer does not acknowledge.

    Parameters
    ----------
    process : int
        Process id of the launcher.
    silence_s : float
        How long that may last.
    clock : callable, optional
        Returns seconds.

    Notes
    -----
    TCP's keep-alive, by which a daemon of Open MPI notices a lost host, is not used while data is in flight; the kernel
    then retransmits it up to ``net.ipv4.tcp_retries2`` times, 15 minutes by default. /proc/net/tcp has the number of
    retransmissions.
    """

    def __init__(self, process: int, silence_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._process = process
        self._silence_s = silence_s
        self._clock = clock
        self._since: dict[str, float] = {}  # by socket

    def lost_host(self) -> str | None:
        """Name a host that has not acknowledged data for `silence_s`, or None. Takes some milliseconds."""
        sockets, now = set(_sockets(self._process)), self._clock()
        again = {number: address for number, address in _retransmitting(self._process) if number in sockets}
        self._since = {number: self._since.get(number, now) for number in again}
        for number, since in self._since.items():
            if now - since >= self._silence_s:
                return _name(again[number])
        return None


def _sockets(process: int) -> Iterator[str]:
    """Yield the numbers of the sockets of a process and its children."""
    pids = [str(process)]
    with contextlib.suppress(OSError):
        pids += Path(f"/proc/{process}/task/{process}/children").read_text().split()
    for pid in pids:
        with contextlib.suppress(OSError):
            for entry in os.scandir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    target = os.readlink(entry.path)
                    if target.startswith(_SOCKET):
                        yield target[len(_SOCKET) : -1]


def _retransmitting(process: int) -> Iterator[tuple[str, str]]:
    """Yield number and remote address of the sockets that retransmit data."""
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            for line in Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
                words = line.split()
                if int(words[6], 16) >= _FEWEST:
                    yield words[9], words[2].partition(":")[0]


def _name(address: str) -> str:
    """Host name of an address in /proc/net/tcp: words of four bytes, each in this machine's byte order."""
    words = (int(address[i : i + 8], 16) for i in range(0, len(address), 8))
    packed = b"".join(word.to_bytes(4, sys.byteorder) for word in words)
    text = socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed).removeprefix("::ffff:")
    with contextlib.suppress(OSError):
        return socket.gethostbyaddr(text)[0]
    return text
