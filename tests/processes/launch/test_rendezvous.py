"""The port that is reserved for the trainers' torch.distributed."""

import errno
import socket
import subprocess
import sys

import pytest

from mpidata.launch.starting.rendezvous import rendezvous


def test_port_is_reserved_against_other_processes() -> None:
    with rendezvous() as first, rendezvous() as second:
        assert first["MASTER_ADDR"] == second["MASTER_ADDR"] == "127.0.0.1"
        assert first["MASTER_PORT"] != second["MASTER_PORT"]
        with socket.socket() as other, pytest.raises(OSError) as refused:
            other.bind(("127.0.0.1", int(first["MASTER_PORT"])))
        assert refused.value.errno == errno.EADDRINUSE


def test_torch_can_bind_the_reserved_port() -> None:
    script = (
        "import torch.distributed as dist\n"
        "dist.init_process_group('gloo', rank=0, world_size=1)\n"
        "dist.barrier()\nprint('met')\ndist.destroy_process_group()\n"
    )
    with rendezvous() as variables:
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120)
    assert done.stdout == "met\n", done.stderr
