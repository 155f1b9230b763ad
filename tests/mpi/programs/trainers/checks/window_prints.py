"""Trainer: writes a fingerprint of each step of the heat example's windows, by simulation and first step."""

import hashlib
import json
import os

from numpy_stream import stream

found: dict[str, list[str]] = {}
for window in stream():
    key = f"{int(window['simulation'])}/{int(window['step'][0])}"
    assert key not in found, f"window {key} came twice"
    found[key] = [hashlib.sha256(field.tobytes()).hexdigest() for field in window["temperature"]]
with open(f"prints-{os.environ['RANK']}.json", "w") as file:
    json.dump(found, file)
