"""The address at which trainers on one machine find one another with torch.distributed; no other job has it."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

__all__ = ["rendezvous"]

_HERE = "127.0.0.1"
_LOOPBACK = "lo"


@contextlib.contextmanager
def rendezvous() -> Iterator[dict[str, str]]:
    """Reserve a port for trainer 0, and yield the variables that torch.distributed reads.

    Notes
    -----
    The port is bound with SO_REUSEADDR, but not listened on: the system gives it to no process that asks for any free
    port, but torch, which also sets this option, may take it.
    """
    with socket.socket() as kept:
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind((_HERE, 0))
        variables = {"MASTER_ADDR": _HERE, "MASTER_PORT": str(kept.getsockname()[1])}
        if _LOOPBACK in (name for _, name in socket.if_nameindex()):
            variables["GLOO_SOCKET_IFNAME"] = _LOOPBACK
        yield variables
