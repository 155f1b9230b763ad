"""Times calls of publish and copies into reused memory, in turn. Arguments: SIZE SECONDS."""

import ctypes
import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np

import mpidata
from mpidata.trainer.join import join

size, seconds = int(sys.argv[1]), float(sys.argv[2])
join()
values, copies = np.ones(size // 4, np.float32), [np.zeros(size // 4, np.float32) for _ in range(2)]
took: dict[str, list[float]] = {"publish_ms": [], "memcpy_ms": []}
end = time.perf_counter() + seconds
number = 0
while number < 6 or time.perf_counter() < end:
    values[0] = number
    before = time.perf_counter()
    mpidata.publish({"weights": values})
    between = time.perf_counter()
    ctypes.memmove(copies[number % 2].ctypes.data, values.ctypes.data, values.nbytes)
    after = time.perf_counter()
    if number > 2:  # the first calls allocate memory
        took["publish_ms"].append(1e3 * (between - before))
        took["memcpy_ms"].append(1e3 * (after - between))
    number += 1
found = {name: statistics.median(of) for name, of in took.items()}
ratio = statistics.median(a / b for a, b in zip(took["publish_ms"], took["memcpy_ms"], strict=True))
Path("call.json").write_text(json.dumps({**found, "ratio": ratio}))
Path("result.json").write_text(json.dumps({"samples": number, "seconds": seconds}))
