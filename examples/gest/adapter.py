"""Generators of gest-api, the interface of libEnsemble and Xopt, as samplers of mpidata."""

import atexit

import numpy as np
from gest_api.vocs import VOCS, ContinuousVariable, DiscreteVariable


class GestSampler:
    """A sampler whose simulations a generator suggests; the objective, to be maximised, is how hard each one is.

    A derived class defines `make(vocs, seed)`, which returns the generator. This gets each simulation once, when the
    losses of `enough` of its samples are known, as the `measure` of samplers that learn.
    """

    enough = 8
    measure = "excess"  # comparable between simulations although the losses fall

    def __init__(self, space, seed):
        self.names = list(space)
        self.axes = {name: _axis(given) for name, given in space.items()}
        variables = {name: axis for name, axis in self.axes.items() if not isinstance(axis, _Constant)}
        constants = {name: axis.value for name, axis in self.axes.items() if isinstance(axis, _Constant)}
        vocs = VOCS(variables=variables, constants=constants, objectives={"loss": "MAXIMIZE"})
        self.generator = self.make(vocs, seed)
        self.suggested = []  # by simulation number
        self.told = set()
        atexit.register(lambda: self.generator.finalize())

    def make(self, vocs, seed):
        raise NotImplementedError("Derive a class from GestSampler whose method make returns the generator.")

    def sample(self, count):
        points = self.generator.suggest(count)
        if len(points) != count:
            raise ValueError(f"suggest({count}) returned {len(points)} points")
        self.suggested += points
        constants = {name: axis.value for name, axis in self.axes.items() if isinstance(axis, _Constant)}
        return np.array([[float({**constants, **point}[name]) for name in self.names] for point in points])

    def observe(self, simulations, parameters, losses):
        known = (losses["count"] >= self.enough) & ~np.isin(simulations, list(self.told))
        results = [
            {**self.suggested[simulation], **self._point(row), "loss": float(loss)}
            for simulation, row, loss in zip(
                simulations[known], parameters[known], losses[self.measure][known], strict=True
            )
        ]
        self.told |= set(simulations[known].tolist())
        if results:
            self.generator.ingest(results)

    # The whole generator is stored; most can be pickled. Without these two methods a resumed job starts with a new
    # generator, which repeats its suggestions.
    def state_dict(self):
        return {"generator": self.generator, "suggested": self.suggested, "told": self.told}

    def load_state_dict(self, state):
        self.__dict__.update(state)

    def _point(self, row):
        return {name: self.axes[name].exact(value) for name, value in zip(self.names, row.tolist(), strict=True)}


class _Continuous(ContinuousVariable):
    def exact(self, value):
        return float(value)


class _Discrete(DiscreteVariable):
    def exact(self, value):
        return min(self.values, key=lambda allowed: abs(allowed - value))


class _Constant:
    def __init__(self, value):
        self.value = value

    def exact(self, value):
        return self.value


def _axis(given):
    """Return the variable for a parameter of the job file; a text is its index in the list, as in samplers."""
    if isinstance(given, list):
        return _Continuous(domain=given)
    if "integers" in given:
        first, last = given["integers"]
        return _Discrete(values=set(range(first, last + 1)))
    if "choices" in given:
        choices = given["choices"]
        return _Discrete(values=set(range(len(choices)) if isinstance(choices[0], str) else choices))
    value = given["value"]
    return _Constant(0 if isinstance(value, str) else value)
