"""The shim mpidata-rank names a program for which others wait."""

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pulse_rank import JOINED, LEFT, LOADER, PulseRank
from waiting import wait_until

STOPS = "os.kill(os.getpid(), signal.SIGSTOP)"
# Ranks for which others wait, as arguments of PulseRank; nothing is reported about the last three.
HELD_UP: dict[str, dict[str, Any]] = {
    "trainer": {"then": STOPS, "flags": JOINED, "rank": 1},
    "scheduler": {"then": STOPS, "flags": JOINED, "rank": 0},
    "loader": {"then": "hang()", "flags": 0, "rank": 0, "words": "--loader 5", **LOADER},
    "second": {"then": "hang()", "flags": 0, "rank": 1},
    "hangs": {"then": "hang()", "flags": JOINED, "rank": 1},
    "has left": {"then": STOPS, "flags": JOINED | LEFT, "rank": 1},
}
SILENT = 3
HeldUp = Callable[[str], tuple[str, float]]


@pytest.fixture(scope="module")
def held_up(shim: Path, tmp_path_factory: pytest.TempPathFactory) -> HeldUp:
    """Return what is reported about each rank, and after how many seconds. All wait at once: each takes seconds."""
    folder = tmp_path_factory.mktemp("held-up")
    (folder / "second" / "run" / "waiting").mkdir(parents=True)
    (folder / "second" / "run" / "waiting" / "for").touch()  # by another rank
    ranks = {name: PulseRank(shim, folder / name, **of) for name, of in reversed(HELD_UP.items())}
    said: dict[str, tuple[str, float]] = {}

    def all_told() -> bool:
        for name in ranks.keys() - said.keys():
            log = ranks[name].run / "logs" / "idle.log"
            if log.exists() and (text := log.read_text()):
                said[name] = text, time.monotonic() - ranks[name].started
        return len(said) >= len(ranks) - SILENT

    try:
        with contextlib.suppress(AssertionError):
            wait_until(all_told, 15)
    finally:
        for rank in ranks.values():
            os.killpg(rank.process.pid, signal.SIGKILL)
            rank.process.communicate(timeout=20)
    return lambda name: said.get(name, ("", 0.0))


@pytest.mark.parametrize("rank, who", [("trainer", "rank 1 (trainer 0)"), ("scheduler", "rank 0 (the scheduler)")])
def test_stopped_program_is_reported(held_up: HeldUp, rank: str, who: str) -> None:
    told, seconds = held_up(rank)
    assert told.startswith(
        f"mpidata: The program of {who} has been stopped for 6 s, for example by SIGSTOP, and others wait for it."
    )
    assert "`kill -CONT " in told and told.count("\n") == 1 and seconds > 6


def test_program_that_has_not_joined_is_reported(held_up: HeldUp) -> None:
    told, _ = held_up("loader")
    who = "loader 5, which was spawned"
    assert told.startswith(f"mpidata: The program of {who} has not joined the job 6 s after its start: it sleeps")


def test_only_one_of_the_ranks_that_have_not_joined_is_reported(held_up: HeldUp) -> None:
    assert held_up("second")[0] == ""


@pytest.mark.parametrize("then", ["hangs", "has left"])
def test_joined_program_that_hangs_or_has_left_is_not_reported(held_up: HeldUp, then: str) -> None:
    assert held_up(then)[0] == ""
