"""Trainer: records a fingerprint of every sample each time it receives the sample.

With the arguments KILLS and SAMPLES it draws at most (k+1)/(KILLS+1) of its SAMPLES before kill k+1; the file `kills`
has a byte per kill. So a fast machine does not finish before the test has made all its kills.
"""

import hashlib
import json
import os
import pathlib
import sys
import time

from numpy_stream import stream

kills, samples = (int(argument) for argument in sys.argv[1:] or (0, 0))


def wait_for_kill(drawn: int) -> None:
    while (made := pathlib.Path("kills").stat().st_size) < kills and drawn >= samples * (made + 1) // (kills + 1):
        time.sleep(0.01)


counted: dict[str, list[str]] = {}
for drawn, sample in enumerate(stream()):
    key = f"{int(sample['simulation'])}/{int(sample['step'])}"
    counted.setdefault(key, []).append(hashlib.sha256(sample["temperature"].tobytes()).hexdigest())
    if kills:
        wait_for_kill(drawn)
path = pathlib.Path(f"census-{os.environ['RANK']}.json")
path.write_text(json.dumps(counted))
