"""The scheduler alone: fake groups and trainers answer at once. Arguments: folder, groups, simulations, seconds."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from mpidata.native.event import Event, Held, Next
from mpidata.run.plan import Field, Plan, Program
from mpidata.scheduler.scheduler import Scheduler

STEPS = 10
WARM_S = 0.2


class Done(BaseException):
    """Time is up."""


class Answers:
    """Each group requests the next simulation as soon as it has one; the trainer has all its samples at once."""

    can_spawn = False

    def __init__(self, groups: int, seconds: float) -> None:
        self._seconds = seconds
        self._asking = deque((group, -1) for group in range(groups))
        self._held: deque[tuple[int, int]] = deque()
        self._dispatched = 0
        self._from = (0.0, 0.0, 0)
        self._began = time.perf_counter()
        self.result: dict[str, float] = {}

    def poll(self, timeout_s: float) -> list[Event]:
        if self._held:
            simulation, by_try = self._held.popleft()
            return [Held(of_solver=False, index=0, rank=0, simulation=simulation, by_try=by_try)]
        if self._asking:
            group, simulation = self._asking.popleft()
            return [Next(of_solver=True, index=group, rank=0, simulation=simulation, steps=STEPS, failed=0, text="")]
        raise Done

    def dispatch(
        self, group: int, simulation: int, by_try: int, validation: bool, parameters: NDArray[np.float64]
    ) -> None:
        self._asking.append((group, simulation))
        self._dispatched += 1
        if self._dispatched % 256 == 0:
            self._look()

    def _look(self) -> None:
        now, used = time.perf_counter(), time.process_time()
        if not self._from[0]:
            if now - self._began >= WARM_S:
                self._from = (now, used, self._dispatched)
        elif now - self._from[0] >= self._seconds:
            count = self._dispatched - self._from[2]
            self.result = {"per_second": count / (now - self._from[0]), "cpu_us": 1e6 * (used - self._from[1]) / count}
            raise Done

    def expect(self, simulation: int, steps: int, by_try: int) -> None:
        self._held.append((simulation, by_try))

    def abort(self, status: int) -> NoReturn:
        raise RuntimeError(f"The scheduler gave up with status {status}.")

    def spawned(self, *_: object) -> Sequence[tuple[int, str]]:
        return []

    def __getattr__(self, name: str) -> Any:  # other messages do not matter here
        return lambda *_: None


def resident_mb() -> float:
    """Return the current memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> None:
    folder, groups, simulations, seconds = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    program = Program(("program",))
    plan = Plan(
        run=folder, folder=folder, seed=0, world=2 + groups, trainers=1, groups=groups, ranks_per_group=1, in_flight=4,
        simulations=simulations, validation=0, policy="fifo", capacity=100, watermark=1, tail="drop",
        parameters=("a", "b", "c", "d"), fields=(Field("u", "float32", (4,)),),
        programs=dict.fromkeys(("scheduler", "trainer", "solver"), program),
    )  # fmt: skip
    before = resident_mb()
    answers = Answers(groups, seconds)
    messages: Any = answers
    scheduler = Scheduler(plan, np.random.default_rng(0).random((simulations, 4)), messages)
    queued = resident_mb()
    try:
        scheduler.run()
    except Done:
        pass
    if not answers.result:
        raise SystemExit("The simulations were used up before time. Give more of them.")
    memory = {"queue_mb": queued - before, "queued_mb": queued, "end_mb": resident_mb()}
    (folder / "result.json").write_text(json.dumps({**answers.result, **memory}))


if __name__ == "__main__":
    main()
