"""Makes loaders answer requests with what these ask for, without a dataset. The job's sitecustomize.py imports this."""

import json
import os
import signal
import sys
import types

import numpy as np

from mpidata.loaders import serve
from mpidata.loading.transport import Closed, Kind, Status


def pattern(number: int, size: int) -> np.ndarray:
    return np.resize((np.arange(251) + number).astype(np.uint8), size)


def echo(requests, workers):
    while not isinstance(request := requests.next(1.0), Closed):
        if request is None or request.kind == Kind.FORGET:
            continue
        wanted = json.loads(bytes(request.payload))
        requests.sign_of_life(f"number {request.number}")
        buffers = [pattern(request.number + i, size) for i, size in enumerate(wanted["sizes"])]
        requests.answer(request, Status.OK, request.payload, [buffer.data for buffer in buffers])
        if wanted.get("die"):
            os.kill(os.getpid(), signal.SIGKILL)


serve.serve = echo
sys.modules["mpidata.loaders.batches"] = types.ModuleType("without torch, which takes long to load")
sys.modules["mpidata.loaders.batches"].Batches = lambda requests: None
