"""Five ways to train the same surrogate of the heat equation: three buffers online, and two sets of files."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from experiments.heat import buffers_page
from experiments.heat.page import render
from experiments.runs import ROOT, Part, Results, Run, call, digits, mpidata

__all__ = ["buffers", "part"]

_HERE = Path(__file__).resolve().parent
_PRODUCED = "production"  # the run that records the files of the offline arms


@dataclass(frozen=True)
class _Size:
    simulations: int
    seeds: int
    held_out: int
    few: int  # simulations of the limited set
    repeats: int  # how often the reservoir and the arms with all files use each sample

    @property
    def once(self) -> int:
        """Number of training steps that use each sample once."""
        return self.simulations * 100 // 16


_WHOLE, _QUICK = _Size(1000, 5, 1000, 100, 4), _Size(160, 2, 200, 16, 4)
# Each seed gives the sampler and the weights different seeds; no other run has those of the record.
_ONLINE = {
    "fifo": ["buffer.policy=fifo"],
    "firo": ["buffer.policy=firo"],
    "reservoir": ["buffer.policy=reservoir"],
}
_OFFLINE = ("offline, few", "offline, all")


def part(quick: bool) -> Part:
    """Return the experiment."""
    size = _QUICK if quick else _WHOLE
    runs = [Run(_PRODUCED, partial(_produce, size), needed=True)]
    for seed in range(size.seeds):
        runs += [Run(f"{arm} {seed}", partial(_online, size, arm, seed)) for arm in _ONLINE]
        runs += [Run(f"{arm} {seed}", partial(_offline, size, arm, "halved", seed)) for arm in _OFFLINE]
    return Part("heat", runs, partial(render, [*_ONLINE, *_OFFLINE], range(size.seeds), size.once))


_BUFFERS = {
    "all kept": ("random", 1.0),
    "random, 50 %": ("random", 0.5),
    "random, 10 %": ("random", 0.1),
    "random, 2 %": ("random", 0.02),
    "by simulation, 50 %": ("by simulation", 0.5),
    "by simulation, 10 %": ("by simulation", 0.1),
    "by simulation, 2 %": ("by simulation", 0.02),
    "most drawn, 10 %": ("most drawn", 0.1),
    "oldest drawn, 10 %": ("oldest drawn", 0.1),
    "least drawn first, 10 %": ("least drawn first", 0.1),
    "firo, 10 %": ("firo", 0.1),
}


def buffers(quick: bool) -> Part:
    """Return the experiment with policies and capacities of the buffer."""
    size, seeds = (_QUICK, range(2)) if quick else (_WHOLE, range(10))
    runs = [Run(_PRODUCED, partial(_produce, size), needed=True)]
    for seed in seeds:
        runs += [Run(f"offline {seed}", partial(_offline, size, "offline, all", "cosine", seed))]
        runs += [Run(f"{arm} {seed}", partial(_replayed, size, *_BUFFERS[arm], seed)) for arm in _BUFFERS]
    return Part("buffers", runs, partial(buffers_page.render, ["offline", *_BUFFERS], seeds, size.simulations))


def _job(folder: Path, size: _Size, seed: int, sampled: int, *settings: str) -> dict[str, Any]:
    result = folder / "result.json"
    program = [sys.executable, "online.py", str(seed), str(size.once // 5), str(size.held_out), str(result)]
    counts = [f"parameters.count={size.simulations}", f"seed={1000 + sampled}"]
    all_settings = [f"trainers.program={json.dumps(program)}", *counts, *settings]
    mpidata(folder, _HERE / "heat.yaml", *all_settings, PYTHONPATH=str(ROOT))
    found: dict[str, Any] = json.loads(result.read_text())
    return found


def _online(size: _Size, arm: str, seed: int, folder: Path, results: Results) -> dict[str, Any]:
    repeats = [f"buffer.repeats={size.repeats}"] if arm == "reservoir" else []
    return _job(folder, size, seed, seed, *_ONLINE[arm], *repeats)


def _produce(size: _Size, folder: Path, results: Results) -> dict[str, Any]:
    """Record all samples for the offline arms, without training."""
    shutil.rmtree(_record(size), ignore_errors=True)  # from another run
    _record(size).parent.mkdir(exist_ok=True)
    return _job(folder, size, -1, 0, "buffer.policy=fifo", f"record.path={_record(size)}")


def _offline(size: _Size, arm: str, rate: str, seed: int, folder: Path, results: Results) -> dict[str, Any]:
    if not _record(size).exists():  # made on another machine
        _produce(size, folder, results)
    result = folder / "result.json"
    few = arm == "offline, few"
    simulations, steps = size.few if few else size.simulations, size.repeats * size.once
    numbers = [str(seed), str(size.once // 5), str(size.held_out)]
    record = [str(_record(size)), str(simulations), str(steps), rate]
    call(folder, [sys.executable, str(_HERE / "offline.py"), *numbers, str(result), *record], PYTHONPATH=str(ROOT))
    found: dict[str, Any] = json.loads(result.read_text())
    return found | {"produced_s": results[_PRODUCED]["seconds"] * simulations / size.simulations}


def _replayed(size: _Size, policy: str, part: float, seed: int, folder: Path, results: Results) -> dict[str, Any]:
    if not _record(size).exists():
        _produce(size, folder, results)
    result = folder / "result.json"
    numbers = [str(seed), str(size.once), str(size.held_out), str(result), str(_record(size))]
    more = [str(size.simulations), str(size.repeats), policy, str(part)]
    call(folder, [sys.executable, str(_HERE / "replayed.py"), *numbers, *more], PYTHONPATH=str(ROOT))
    found: dict[str, Any] = json.loads(result.read_text())
    return digits(found)


def _record(size: _Size) -> Path:
    return ROOT / "build" / f"experiments-record-{size.simulations}"
