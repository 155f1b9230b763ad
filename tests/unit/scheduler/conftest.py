"""The real scheduler with groups and trainers that answer at once, on a clock that runs only while it waits."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from fake_library import make_event
from numpy.typing import NDArray

from mpidata.native.constants import GIVEN_UP, TRY_FAILED
from mpidata.native.event import Died, Error, Event, Finalized, Goodbye, Held, Next, Status
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Field, Plan, Program
from mpidata.run.rank_files import PlannedRun
from mpidata.scheduler.figures.summary import BYTES, DRAWN, RECEIVED, VALIDATION
from mpidata.scheduler.scheduler import Scheduler

PROGRAM = Program(("program",))
# For inference ranks, their settings: {"function": "net:answer"}.
PROGRAMS = dict.fromkeys(("scheduler", "trainer", "solver"), PROGRAM) | {
    "inference": Program(("true", "eyJmdW5jdGlvbiI6ICJuZXQ6YW5zd2VyIn0"))
}


class Ended(BaseException):
    """Raised by abort instead of the end of the process."""


class Job:
    """Well-behaved groups and trainers; tests override individual calls.

    Time passes only in polls that find nothing, and delayed events come only then.
    """

    def __init__(self, folder: Path, can_spawn: bool = False, **plan: Any) -> None:
        run = folder / "demo" / "1"
        run.mkdir(parents=True)
        sizes = {"trainers": 1, "groups": 1, "ranks_per_group": 1, "in_flight": 4, "simulations": 3, "validation": 0}
        sizes |= {"seed": 0, "capacity": 100, "watermark": 10, "retries": 0} | plan
        in_world = 0 if sizes.get("start") == "spawn" else sizes["groups"] + sizes.get("spares", 0)
        loaders = sizes.get("loaders", 0) + sizes.get("loader_spares", 0)
        loaders = 0 if sizes.get("loader_start") == "spawn" else loaders
        sizes["world"] = 1 + sizes["trainers"] + in_world * sizes["ranks_per_group"] + loaders
        sizes["world"] += sizes["trainers"] * (sizes.get("ranks_per_replica", 1) - 1)
        sizes["world"] += sizes.get("servers", 0) + sizes.get("inference", 0) + sizes.get("inference_spares", 0)
        sizes["world"] += sizes.get("learner", 0) + sizes.get("learner_spares", 0)
        self.plan = Plan(
            run=run, folder=folder, policy="fifo", tail="drop", parameters=("alpha", "beta"),
            fields=(Field("u", "float32", (4,)),), programs=PROGRAMS,
            **sizes,
        )  # fmt: skip
        self.can_spawn = can_spawn or self.plan.start == "spawn"
        self.can_spawn_loaders = can_spawn or self.plan.loader_start == "spawn"
        self.can_spawn_inference = can_spawn
        self.count = self.plan.simulations + self.plan.validation
        self.parameters: NDArray[np.float64] = np.arange(2.0 * self.count).reshape(self.count, 2)
        self.now = 1000.0
        self.steps: Callable[[int], int] = lambda simulation: 10
        self.fails: dict[int, str] = {}  # simulations that their solver abandons, and why
        self.raises: dict[int, str] = {}
        self.calls: list[tuple[Any, ...]] = []
        self.queue: deque[Event] = deque()
        self.later: list[tuple[float, int, Event]] = []
        self.before: dict[str, Callable[..., bool | None]] = {}
        self.running = [-1] * self.plan.groups_in_world
        self.has_left = [False] * self.plan.groups_in_world
        self.stopped = False
        self.news: list[tuple[int, str]] = []
        self.loader_news: list[tuple[int, str]] = []
        self.tries: dict[int, int] = {}  # the tries that trainers were last told to expect
        self.held: list[dict[int, int]] = [{} for _ in range(self.plan.trainers)]
        self.scheduler = Scheduler(self.plan, self.parameters, self, clock=lambda: self.now)

    # Called by tests

    def event(self, kind: type[Event], index: int = 0, after: float = 0.0, **values: Any) -> None:
        of_other = values.get("of_loader") or values.get("of_inference") or values.get("of_learner")
        of_solver = kind in (Next, Finalized, Error, Died) and not of_other
        rank = 1 + self.plan.trainers + index if of_solver else 1 + index
        event: Event = make_event(kind, **{"index": index, "of_solver": of_solver, "rank": rank} | values)
        if after:
            self.later.append((self.now + after, len(self.later), event))
        else:
            self.queue.append(event)

    def begin(self) -> None:
        for group in range(self.plan.groups_in_world):
            self.event(Next, group)
        for loader in range(self.plan.loaders_in_world):
            self.event(Next, loader, of_loader=True)
        for number in range(self.plan.inference_in_world):
            self.event(Next, number, of_inference=True)
        for number in range(self.plan.learners_in_world):
            self.event(Next, number, of_learner=True)

    def run(self) -> int:
        """Return 0 after an orderly end, else the status of the abort, or 1000 if that is 0."""
        self.begin()
        try:
            self.scheduler.run()
        except Ended as ended:
            status = int(ended.args[0])
            return status or 1000
        return 0

    @property
    def summary(self) -> dict[str, Any]:
        return dict(json.loads((self.plan.run / "summary.json").read_text()))

    def events(self, name: str = "") -> list[dict[str, Any]]:
        lines = (self.plan.run / "events.jsonl").read_text().splitlines()
        return [event for event in map(json.loads, lines) if name in ("", event["event"])]

    def called(self, name: str) -> list[tuple[Any, ...]]:
        return [call[1:] for call in self.calls if call[0] == name]

    # Called by the scheduler

    def _call(self, name: str, *values: Any) -> bool:
        """Record the call; return whether the job answers as usual."""
        self.calls.append((name, *values))
        return name not in self.before or self.before[name](*values) is not False

    def poll(self, timeout_s: float) -> list[Event]:
        if not self.queue:
            due = sorted((item for item in self.later if item[0] <= self.now + timeout_s), key=lambda item: item[:2])
            if not due:
                # A thread writes files; its work takes no time on the job's clock.
                if (writing := self.scheduler.checkpoints._task) is not None:
                    writing.join(10)
                self.now += timeout_s
                assert self.now < 5000, "the scheduler waits for ever"
                return []
            self.now = max(self.now, due[0][0])
            self.later.remove(due[0])
            return [due[0][2]]
        return [self.queue.popleft()]

    def close_running(self, group: int) -> dict[str, Any]:
        simulation, self.running[group] = self.running[group], -1
        if simulation < 0:
            return {}
        return {
            "simulation": simulation,
            "steps": self.steps(simulation),
            "failed": GIVEN_UP if simulation in self.fails else TRY_FAILED * (simulation in self.raises),
            "text": self.fails.get(simulation) or self.raises.get(simulation, ""),
        }

    def finalize(self, group: int, after: float = 0.0) -> bool:
        """Return False, so that the usual answer does not follow."""
        self.has_left[group] = True
        self.event(Finalized, group, after, **self.close_running(group))
        return False

    def die(self, group: int, rank_in_group: int = 0, after: float = 0.0, **record: Any) -> bool:
        """Kill a rank of the group, with an exit note if any is given; the simulation that it runs is never closed.

        Returns False, so that the usual answer does not follow.
        """
        self.running[group] = -1
        if record:
            self.write_record(group, rank_in_group, **record)
        self.event(Died, group, after, rank_in_group=rank_in_group)
        return False

    def write_record(self, group: int, rank_in_group: int, **record: Any) -> None:
        path = PlannedRun(RunFolder(self.plan.run), self.plan).group_exit(group, rank_in_group)
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"signal": None, "exit": None, "joined": True, **record}))

    def print(self, group: int, text: str, rank_in_group: int = 0) -> None:
        path = PlannedRun(RunFolder(self.plan.run), self.plan).group_log(group, rank_in_group)
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def goodbye(self, trainer: int, after: float = 0.0) -> None:
        received = sum(steps for simulation, steps in self.held[trainer].items() if simulation < self.plan.simulations)
        validation = sum(self.held[trainer].values()) - received
        figures = [0] * 8
        figures[RECEIVED], figures[VALIDATION], figures[DRAWN] = received, validation, received // 4
        figures[BYTES] = 16 * (received + validation)
        self.event(Goodbye, trainer, after)
        self.event(Status, trainer, after + 0.2, statistics=tuple(figures))

    def dispatch(
        self, group: int, simulation: int, by_try: int, validation: bool, parameters: NDArray[np.float64]
    ) -> None:
        assert parameters.tolist() == self.parameters[simulation].tolist()
        assert validation == (simulation >= self.plan.simulations)
        assert self.running[group] == -1
        self.running[group] = simulation
        if self._call("dispatch", group, simulation):
            self.event(Next, group, **self.close_running(group))

    def no_more(self, group: int) -> None:
        if self._call("no_more", group) and not self.has_left[group]:
            self.finalize(group)

    def expect(self, simulation: int, steps: int, by_try: int) -> None:
        self.tries[simulation] = by_try
        if not self._call("expect", simulation, steps):
            return
        trainers = self.plan.trainers
        for trainer in range(trainers):
            first = (trainer - simulation) % trainers
            self.held[trainer][simulation] = len(range(first, steps, trainers))
            self.event(Held, trainer, simulation=simulation, by_try=by_try)

    def cancel(self, simulation: int, group: int, closed: bool = False) -> None:
        self._call("cancel", simulation, group, closed)

    def cancel_group(self, group: int, simulation: int, by_try: int) -> None:
        if self._call("cancel_group", group, simulation, by_try):
            self.event(Next, group, **self.close_running(group))

    def validation(self) -> None:
        self._call("validation")

    def lose(self, group: int, kind: str = "group", item: str = "") -> None:
        if kind != "group":
            self._call(f"lose_{kind}", group, item)
            return
        self._call("lose", group)
        self.has_left[group] = True

    def lose_trainer(self, trainer: int) -> None:
        self._call("lose_trainer", trainer)

    def retire_trainer(self, trainer: int) -> None:
        self._call("retire_trainer", trainer)

    def join_trainer(self, trainer: int) -> None:
        self._call("join_trainer", trainer)

    def gone(self, group: int, kind: str = "group") -> None:
        self._call("gone" if kind == "group" else f"{kind}_gone", group)

    def serves(self, loader: int) -> None:
        self._call("serves", loader)

    def retires(self, loader: int) -> None:
        if self._call("retires", loader):
            spawned = loader >= self.plan.loaders_in_world
            self.event(Finalized if spawned else Next, loader, after=1.0, of_loader=True)

    def rests(self, loader: int) -> None:
        self._call("rests", loader)

    def release(self, number: int, kind: str = "loader") -> None:
        if kind != "loader":
            self._call(f"release_{kind}", number)
            self.event(Finalized, number, **{f"of_{kind}": True})
        elif self._call("release", number):
            self.event(Finalized, number, of_loader=True)

    def teaches(self, learner: int) -> None:
        self._call("teaches", learner)

    def answers(self, inference: int) -> None:
        self._call("answers", inference)

    def lose_loader(self, loader: int, after: float = 0.0, kind: str = "loader", **record: Any) -> None:
        """Kill a loader, an inference rank or a learner, with this exit note."""
        path = PlannedRun(RunFolder(self.plan.run), self.plan).exit_of(kind, loader)
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"signal": 9, "exit": None, "joined": True, **record}))
        self.event(Died, loader, after, **{f"of_{kind}": True})

    def spawn(self, group: int, values: Sequence[str], kind: str = "group") -> None:
        if kind != "group":
            if self._call(f"spawn_{kind}", group):
                self.loader_news.append((group, ""))
            return
        self.running.append(-1)
        self.has_left.append(True)  # until it joins
        if self._call("spawn", group, tuple(values)):
            self.news.append((group, ""))

    joining = False

    def ready(self, trainer: int, group: int, kind: str, answer: int) -> None:
        self._call("ready", trainer, group, kind, answer)

    def spawned(self, invite: bool, kind: str = "group") -> list[tuple[int, str]]:
        if kind != "group":
            if not self.plan.loaders and kind == "loader":
                return []
            news, self.loader_news = self.loader_news, []
            for loader in [loader for loader, error in news if not error]:
                self.event(Next, loader, **{f"of_{kind}": True})
            return news
        news, self.news = self.news, []
        for group, error in news:
            if not error:
                self.has_left[group] = False
                self.event(Next, group)
        return news

    def end_of_stream(self) -> None:
        if self._call("end_of_stream"):
            for trainer in range(self.plan.trainers):
                self.goodbye(trainer)

    def stop(self) -> None:
        if self._call("stop"):
            for trainer in range(0 if self.stopped else self.plan.trainers):
                self.goodbye(trainer)
            self.stopped = True
            for group in range(len(self.running)):
                self.running[group] = -1
                if not self.has_left[group]:
                    self.finalize(group)

    def trainers(self, number: int, count: int) -> None:
        self._call("trainers", number, count)

    def checkpoint(self, number: int) -> None:
        self._call("checkpoint", number)

    def relieve(self, trainer: int, samples: int) -> None:
        self._call("relieve", trainer, samples)

    def hands_over(self, trainer: int) -> None:
        self._call("hands_over", trainer)

    def all_gone(self) -> None:
        self._call("all_gone")

    def close(self) -> None:
        self._call("close")

    def abort(self, status: int) -> NoReturn:
        self._call("abort", status)
        raise Ended(status)


class Echo(Job):
    """Answers at once and with as little work as possible, to time the scheduler alone."""

    def begin(self) -> None:
        self.busy: list[int] = []
        self.turn = 0
        self.waiting = list(range(self.plan.groups))
        self.asking = dict.fromkeys(range(self.plan.groups), -1)
        self.to_hold: deque[tuple[int, int]] = deque()

    def poll(self, timeout_s: float) -> list[Event]:
        if self.to_hold:
            trainer, simulation = self.to_hold.popleft()
            return [Held(of_solver=False, index=trainer, rank=0, simulation=simulation, by_try=1)]
        if self.waiting:
            group = self.waiting.pop()
            simulation = self.asking[group]
            return [Next(of_solver=True, index=group, rank=0, simulation=simulation, steps=10, failed=0, text="")]
        return super().poll(timeout_s)

    def dispatch(
        self, group: int, simulation: int, by_try: int, validation: bool, parameters: NDArray[np.float64]
    ) -> None:
        self.asking[group] = simulation
        self.waiting.append(group)

    def expect(self, simulation: int, steps: int, by_try: int) -> None:
        self.to_hold.extend((trainer, simulation) for trainer in range(self.plan.trainers))


@pytest.fixture
def make_job(tmp_path: Path) -> Callable[..., Job]:
    return lambda **plan: Job(tmp_path, **plan)


@pytest.fixture
def make_echo(tmp_path: Path) -> Callable[..., Job]:
    return lambda **plan: Echo(tmp_path, **plan)
