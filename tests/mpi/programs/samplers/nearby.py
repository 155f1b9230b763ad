"""A sampler that samples near the simulation with the largest loss so far."""

import numpy as np


class Nearby:
    def __init__(self, space, seed):
        self.random, self.best, self.most = np.random.default_rng(seed), None, -1.0

    def observe(self, simulations, parameters, losses):
        at = losses["mean"].argmax()
        if losses["mean"][at] > self.most:
            self.most, self.best = losses["mean"][at], parameters[at]

    def sample(self, count):
        if self.best is None:
            return self.random.random((count, 1))
        rows = self.best + 0.1 * self.random.standard_normal((count, 1))
        return rows.clip(0.0, 1.0), ["near"] * count, [-1] * count
