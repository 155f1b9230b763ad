"""Where trainers meet with torch.distributed."""

import ipaddress
import socket
import sys
from pathlib import Path
from types import SimpleNamespace

from mpidata.trainer.process_group import _store


def listening(port: int) -> set[str]:
    """Return the local addresses with a listener on this port, as the kernel writes them."""
    lines = [line.split() for name in ("tcp", "tcp6") for line in Path("/proc/net", name).read_text().splitlines()[1:]]
    return {line[1].split(":")[0] for line in lines if line[3] == "0A" and int(line[1].split(":")[1], 16) == port}


def test_store_of_a_single_host_listens_only_on_loopback() -> None:
    alone = SimpleNamespace(
        Get_rank=lambda: 0, Get_size=lambda: 1, Ibcast=lambda *_, **__: SimpleNamespace(Test=lambda: True)
    )
    loopback = int.from_bytes(ipaddress.ip_address("127.0.0.1").packed, sys.byteorder)
    store = _store(alone, "127.0.0.1")  # type: ignore[arg-type]
    assert listening(store.port) == {f"{loopback:08X}"}
    store.set("key", "value")
    assert store.get("key") == b"value"
    other = _store(alone, socket.gethostname())  # type: ignore[arg-type]
    assert any(int(address, 16) == 0 for address in listening(other.port))
