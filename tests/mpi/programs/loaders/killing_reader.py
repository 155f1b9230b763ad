"""Reader of part files that kills its loader at a bad part."""

import os
import signal

import numpy as np


def read(path):
    if "bad-" in str(path):
        os.kill(os.getpid(), signal.SIGKILL)
    yield {"data": np.load(path)}
