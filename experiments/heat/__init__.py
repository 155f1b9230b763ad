"""Five ways to train the same surrogate of the heat equation: three buffers online, and two sets of files."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from experiments.heat.page import render
from experiments.runs import Part, Run, call, mpidata

__all__ = ["part"]

_HERE = Path(__file__).resolve().parent
_PRODUCED = "production"  # the run that records the files of the offline arms


@dataclass(frozen=True)
class _Size:
    simulations: int
    seeds: int
    held_out: int
    few: int  # simulations of the limited set
    repeats: int  # how often the reservoir and the offline arms use a sample of all

    @property
    def once(self) -> int:
        """Steps of training that use each sample once."""
        return self.simulations * 100 // 16


_WHOLE, _QUICK = _Size(1000, 5, 1000, 100, 4), _Size(160, 2, 200, 16, 4)
# Sampler and weights have other seeds for each seed; those of the record belong to no other run.
_ONLINE = {
    "fifo": ["buffer.policy=fifo"],
    "firo": ["buffer.policy=firo"],
    "reservoir": ["buffer.policy=reservoir"],
}
_OFFLINE = ("offline, few", "offline, all")


def part(quick: bool, output: Path) -> Part:
    """Make the experiment; results are kept in `output`."""
    size = _QUICK if quick else _WHOLE
    runs = [Run(_PRODUCED, partial(_produce, size, output))]
    for seed in range(size.seeds):
        runs += [Run(f"{arm}-{seed}", partial(_online, size, arm, seed)) for arm in _ONLINE]
        runs += [Run(f"{arm}-{seed}", partial(_offline, size, arm, seed, output)) for arm in _OFFLINE]
    return Part("heat", runs, partial(render, [*_ONLINE, *_OFFLINE], size.seeds, size.once))


def _job(folder: Path, size: _Size, seed: int, sampled: int, *settings: str) -> dict[str, Any]:
    result = folder / "result.json"
    program = [sys.executable, "online.py", str(seed), str(size.once // 5), str(size.held_out), str(result)]
    counts = [f"parameters.count={size.simulations}", f"seed={1000 + sampled}"]
    mpidata(folder, _HERE / "heat.yaml", "--set", f"trainers.program={json.dumps(program)}", *_each(counts), *settings)
    found: dict[str, Any] = json.loads(result.read_text())
    return found


def _each(settings: list[str]) -> list[str]:
    return [word for setting in settings for word in ("--set", setting)]


def _online(size: _Size, arm: str, seed: int, folder: Path) -> dict[str, Any]:
    repeats = [f"buffer.repeats={size.repeats}"] if arm == "reservoir" else []
    return _job(folder, size, seed, seed, *_each([*_ONLINE[arm], *repeats]))


def _produce(size: _Size, output: Path, folder: Path) -> dict[str, Any]:
    """Record all samples, as the offline arms need them; nobody trains meanwhile."""
    return _job(folder, size, -1, 0, *_each(["buffer.policy=fifo", f"record.path={_record(output)}"]))


def _offline(size: _Size, arm: str, seed: int, output: Path, folder: Path) -> dict[str, Any]:
    result = folder / "result.json"
    few = arm == "offline, few"
    simulations, steps = size.few if few else size.simulations, size.repeats * size.once
    numbers = [str(seed), str(size.once // 5), str(size.held_out)]
    record = [str(_record(output)), str(simulations), str(steps)]
    call(folder, [sys.executable, str(_HERE / "offline.py"), *numbers, str(result), *record])
    found: dict[str, Any] = json.loads(result.read_text())
    produced = json.loads((output / f"{_PRODUCED}.json").read_text())["seconds"]
    return found | {"produced_s": produced * simulations / size.simulations}


def _record(output: Path) -> Path:
    return output.resolve().parent / f"{output.name}-record"
