"""A bad line between a host and the switch: relay.py HOST_PID SWITCH_PID NAME DELAY_MS LOSS_PERCENT SEED

Instead of a cable, each side gets a TAP device, eth0 and NAME. The relay carries the frames between the two with a
delay, and prints an x for each one that it drops. The kernel's sch_netem could do this, but not all kernels have it.
"""

import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import sys
import time

_TUNSETIFF, _IFF_TAP, _IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
_CLONE_NEWNET = 0x40000000
_FRAME = 65600


def tap(pid: str, name: str) -> int:
    """Make a TAP device in the network namespace of a process."""
    space = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    if ctypes.CDLL(None, use_errno=True).setns(space, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH14x", name.encode(), _IFF_TAP | _IFF_NO_PI))
    return device


def carry(sides: tuple[int, int], delay_s: float, loss: float, seed: int) -> None:
    """Carry frames both ways until the process is killed."""
    chance = random.Random(seed)
    under_way: list[tuple[float, int, int, bytes]] = []  # due, number, to, frame
    number = 0
    while True:
        wait = max(0.0, under_way[0][0] - time.monotonic()) if under_way else None
        readable, _, _ = select.select(sides, [], [], wait)
        now = time.monotonic()
        for side in readable:
            frame = os.read(side, _FRAME)
            if chance.random() < loss:
                os.write(1, b"x")
            else:
                number += 1
                other = sides[1] if side == sides[0] else sides[0]
                heapq.heappush(under_way, (now + delay_s, number, other, frame))
        while under_way and under_way[0][0] <= now:
            _, _, other, frame = heapq.heappop(under_way)
            try:
                os.write(other, frame)
            except OSError:  # that side is down
                continue


if __name__ == "__main__":
    host, switch, name, delay_ms, percent, seed = sys.argv[1:]
    both = (tap(host, "eth0"), tap(switch, name))
    print("up", flush=True)
    carry(both, float(delay_ms) / 1000, float(percent) / 100, int(seed))
