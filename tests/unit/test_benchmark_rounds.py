"""Measurements are kept: nothing is measured twice."""

from pathlib import Path

import pytest

from benchmarks import cases, rounds
from benchmarks.contender import BenchmarkError


class Interrupted:
    """Cases a and b; records what is measured, and fails or is interrupted at one measurement."""

    def __init__(self, output: Path) -> None:
        self.order: list[str] = []
        self.rendered = 0
        self._settings = cases.Settings(3, 1.0, output)

    def run(self, failing: int = 0, interrupted: int = 0) -> list[str]:
        def measure(name: str) -> dict[str, float]:
            self.order.append(name)
            if len(self.order) == failing:
                raise BenchmarkError("a reason")
            if len(self.order) == interrupted:
                raise KeyboardInterrupt
            return {"s": float(len(self.order))}

        def render(output: Path) -> None:
            self.rendered += 1

        both = [cases.Case("a", lambda: measure("a")), cases.Case("b", lambda: measure("b"))]
        return cases.run_rounds("x", both, self._settings, render)


def test_only_failed_and_missing_measurements_are_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "describe", lambda: {"cores": "2"})
    run = Interrupted(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run.run(failing=2, interrupted=4)
    assert "".join(run.order) == "abba" and run.rendered == 1
    contents, _ = cases.load(tmp_path, "x")
    assert contents["without"] == ["b, round 1: failed", "3 measurements: not made yet"]
    assert contents["settings"] == "2 rounds of 1 s each, alternated."
    run.order.clear()
    assert run.run() == [] and "".join(run.order) == "baab"  # b of round 1, a of round 2, then round 3
    contents, _ = cases.load(tmp_path, "x")
    assert contents["values"] == {"a": {"s": [1.0, 2.0, 3.0]}, "b": {"s": [1.0, 3.0, 4.0]}}
    assert contents["without"] == [] and contents["settings"] == "3 rounds of 1 s each, alternated."
    before = run.rendered
    assert run.run() == [] and len(run.order) == 4 and run.rendered == before + 1
    rounds.forget(tmp_path / "x.json")
    assert run.run() == [] and len(run.order) == 10


def test_changed_sources_machine_or_duration_start_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = {"cores": "2", "load before": "0.1"}
    key = rounds.key_of(2.0, machine)
    assert rounds.key_of(2.0, {**machine, "load before": "3.0"}) == key
    assert rounds.key_of(1.0, machine) != key and rounds.key_of(2.0, {**machine, "cores": "4"}) != key
    (tmp_path / "mpidata").mkdir()
    monkeypatch.setattr(rounds, "ROOT", tmp_path)
    empty = rounds.key_of(2.0, machine)
    (tmp_path / "mpidata" / "a.py").write_text("a = 1\n")
    written = rounds.key_of(2.0, machine)
    (tmp_path / "mpidata" / "a.py").write_text("a = 2\n")
    assert len({empty, written, rounds.key_of(2.0, machine)}) == 3
    rounds.keep(tmp_path / "x.json", {"key": key, "values": {}})
    assert rounds.resume(tmp_path / "x.json", key) and not rounds.resume(tmp_path / "x.json", empty)
