"""Where the trainers of a job on one machine find one another with torch.distributed: an address nobody else has."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

__all__ = ["rendezvous"]

_HERE = "127.0.0.1"
_LOOPBACK = "lo"


@contextlib.contextmanager
def rendezvous() -> Iterator[dict[str, str]]:
    """Keep a port free for trainer 0, and give the variables that torch.distributed reads.

    Notes
    -----
    The port is bound, but not listened on, and with SO_REUSEADDR: so the system gives it to nobody who asks for any
    free port, and torch, which sets this option too, may take it.
    """
    with socket.socket() as kept:
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind((_HERE, 0))
        variables = {"MASTER_ADDR": _HERE, "MASTER_PORT": str(kept.getsockname()[1])}
        if _LOOPBACK in (name for _, name in socket.if_nameindex()):
            variables["GLOO_SOCKET_IFNAME"] = _LOOPBACK
        yield variables
