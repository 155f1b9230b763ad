"""The sampler of the job file and its generator, which suggests points near those with the largest loss."""

import numpy as np
from adapter import GestSampler
from gest_api import Generator
from gest_api.vocs import ContinuousVariable


class NearTheWorst(Generator):
    """Suggests in turn a point anywhere and one near a point of the worst tenth."""

    returns_id = True

    def __init__(self, vocs, seed=0):
        super().__init__(vocs)
        self.vocs, self.random, self.results, self.count = vocs, np.random.default_rng(seed), [], 0

    def _validate_vocs(self, vocs):
        if len(vocs.objectives) != 1 or vocs.constraints:
            raise ValueError("NearTheWorst has one objective, and no constraints.")

    def suggest(self, num_points=None):
        return [self._one() for _ in range(1 if num_points is None else num_points)]

    def ingest(self, results):
        unknown = [result["_id"] for result in results if not 0 <= result.get("_id", 0) < self.count]
        if unknown:
            raise ValueError(f"There was no point {unknown[0]}.")
        self.results = sorted([*self.results, *results], key=lambda result: -result["loss"])

    def _one(self):
        near = self.results and self.count % 2
        parent = self.results[self.random.integers(1 + len(self.results) // 10)] if near else None
        point = {name: self._value(name, variable, parent) for name, variable in self.vocs.variables.items()}
        self.count += 1
        return {**point, "_id": self.count - 1}

    def _value(self, name, variable, parent):
        if not isinstance(variable, ContinuousVariable):
            return parent[name] if parent else self.random.choice(sorted(variable.values)).item()
        low, high = variable.domain
        if parent is None:
            return self.random.uniform(low, high)
        return float(np.clip(self.random.normal(parent[name], 0.1 * (high - low)), low, high))


class Search(GestSampler):
    def make(self, vocs, seed):
        return NearTheWorst(vocs, seed)  # or, for example, one of Xopt: NelderMeadGenerator(vocs=vocs)
