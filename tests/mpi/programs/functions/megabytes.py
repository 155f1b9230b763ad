"""A simulation of 400 samples of 1 MiB."""

import numpy as np

u = np.ones((512, 512), np.float32)


def simulate(alpha):
    for _ in range(400):
        yield {"u": u}
