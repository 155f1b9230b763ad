"""A sampler that counts: simulation n gets alpha n/1000. Its process is killed once at each call in DIES_AT."""

import json
import os
import signal
import time
from pathlib import Path


class Counting:
    def __init__(self, space, seed):
        self.number, self.calls, self.told = 0, 0, {}

    def sample(self, count):
        self._call("sample")
        rows = [[(self.number + n) / 1000] for n in range(count)]
        self.number += count
        return rows

    def observe(self, simulations, parameters, losses):
        self._call("observe")
        assert (parameters[:, 0] * 1000).round().tolist() == simulations.tolist()
        for simulation, count in zip(simulations.tolist(), losses["count"].tolist(), strict=True):
            assert count >= self.told.get(simulation, 0)
            self.told[simulation] = count
        with Path("told.txt").open("a") as file:
            file.write(json.dumps({"pid": os.getpid(), "calls": self.calls, "told": len(self.told)}) + "\n")

    def _call(self, what):
        self.calls += 1
        time.sleep(float(os.environ.get("SLOW_S", 0)))
        marker = Path(f"died-{self.calls}")
        if "MPIDATA_RUN" not in os.environ:  # `mpidata run` is checking the sampler
            return
        if str(self.calls) == os.environ.get("DIES_ALWAYS_AT"):
            os.kill(os.getpid(), signal.SIGKILL)
        if str(self.calls) in os.environ.get("DIES_AT", "").split() and not marker.exists():
            marker.write_text(what)
            os.kill(os.getpid(), signal.SIGKILL)


class Stateful(Counting):
    def state_dict(self):
        return vars(self)

    def load_state_dict(self, state):
        vars(self).update(state)


class Wrong(Counting):
    def observe(self, simulations, parameters, losses):
        raise ZeroDivisionError("not like this")
