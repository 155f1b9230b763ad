"""Made-up run folders, for tests of what is shown about them."""

import json
from pathlib import Path
from typing import Any

JOB = """\
name: rod
trainers: {ranks: 2, program: [python, train.py]}
solvers: {groups: 3, program: [./solver]}
parameters: {count: 6, sampler: sobol, space: {alpha: [0, 1], beta: [1, 2]}}
fields: {u: {dtype: float32, shape: [64]}}
buffer: {policy: fifo, capacity: 100}
"""
T0 = 1.7e9


class MadeRun:
    """A run folder; times of events are in seconds after T0."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "rod" / "1"
        self.path.mkdir(parents=True)
        (self.path / "job.yaml").write_text(JOB)

    def events(self, *events: tuple[float, str, dict[str, Any]]) -> None:
        with open(self.path / "events.jsonl", "a") as file:
            for time, kind, more in events:
                file.write(json.dumps({"time": T0 + time, "event": kind, **more}) + "\n")

    def parameters(self, count: int) -> None:
        rows = [f"{i},{i / count},{1 + (7 * i % count) / count}" for i in range(count)]
        (self.path / "parameters.csv").write_text("\n".join(["simulation,alpha,beta", *rows, ""]))

    def losses(self, count: int) -> None:
        rows = [f"{i},1,{0.1 * (i + 1)},1,1,0,0,0" for i in range(count)]
        head = "simulation,count,mean,max,last,excess,not_finite,difficulty"
        (self.path / "losses.csv").write_text("\n".join([head, *rows, ""]))

    def simulations(self, count: int, groups: int, seconds: float = 1.0) -> float:
        """Write events of `count` simulations, one after the other in each group; return when all are over."""
        self.events((0.0, "start", {"groups": groups}))
        for i in range(count):
            begin = i // groups * seconds
            self.events((begin, "dispatch", {"simulation": i, "group": i % groups}))
        for i in range(count):
            self.events((i // groups * seconds + seconds, "simulation_complete", {"simulation": i, "steps": 10}))
        return -(-count // groups) * seconds

    def summary(self, **keys: Any) -> None:
        summary = {
            "status": "complete", "error": None, "reason": None, "run": str(self.path), "seconds": 4.0,
            "bytes": 1000000,
            "simulations": {"requested": 6, "complete": 6, "failed": 0},
            "samples": {"received": 60, "validation": 0, "per_trainer": [30, 30]},
            "batches": {"per_trainer": [7, 8]}, "training": {"loss": {"first": 2.0, "last": 0.25}},
        }  # fmt: skip
        (self.path / "summary.json").write_text(json.dumps(summary | keys))
