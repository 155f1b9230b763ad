"""The parts of the benchmarks that measure nothing: statistics, tables, the gate, and how contenders are listed."""

import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from benchmarks import (
    against,
    cases,
    edges,
    front,
    pairs,
    producers,
    ranks,
    rows,
    scheduling,
    stream,
    table,
    waiting_ranks,
)
from benchmarks.__main__ import choose, main
from benchmarks.build import PLACEMENT
from benchmarks.consume import consume
from benchmarks.contender import BATCH, ROOT, BenchmarkError, Cell, Result, run_processes
from benchmarks.figures import Spread
from benchmarks.gate import Gate, GateError
from benchmarks.many_to_one.board import MOST_PRODUCERS, Board, plan
from benchmarks.roster import benchmarks, contenders
from benchmarks.sides import Way
from mpidata.launch.starting.command import mpirun_command

KB = 1 << 10


class Fake:
    """A contender whose rate is known; it may be missing, or fail."""

    about = "a test"

    def __init__(self, name: str, samples: int, missing: str | None = None) -> None:
        self.name = self.row = name
        self._samples, self._missing = samples, missing

    def missing(self) -> str | None:
        return self._missing

    def measure(self, cell: Cell) -> Result:
        if self._samples == 0:
            raise BenchmarkError("a reason")
        assert Cell.read(cell.folder) == cell
        return Result(self._samples, cell.seconds)


def test_a_run_writes_the_page(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    everyone: list[Any] = [
        Fake("mpidata fifo", 900), Fake("MPI, gathered", 1000), Fake("pyzmq, pickle", 300),
        Fake("gone", 1, missing="no library"), Fake("broken", 0),
    ]  # fmt: skip
    without = stream.run(everyone, stream.Settings(rounds=2, seconds=1.0, sizes=[KB, 8 * KB], output=tmp_path))
    assert without == ["gone: no library"] + [
        f"broken, {size} bytes, round {number}: failed" for number in (1, 2) for size in (KB, 8 * KB)
    ]
    assert "a reason" in capfd.readouterr().err
    text = (tmp_path / "stream.md").read_text()
    _, _, ratios = text.partition("## Ratio to: MPI, gathered")
    assert "| mpidata fifo | 0.90 | 0.90 |" in ratios.partition("##")[0]
    _, _, ratios = text.partition("## Ratio to: pyzmq, pickle")
    assert "| mpidata fifo | 3.00 | 3.00 |" in ratios.partition("##")[0]
    assert "2 rounds of 1 s each" in text
    assert "- gone: no library" in text
    assert (tmp_path / "stream.png").read_bytes().startswith(b"\x89PNG")
    (tmp_path / "stream.md").unlink()
    assert main(["--render", "--output", str(tmp_path)]) == 0
    assert (tmp_path / "stream.md").read_text() == text


def test_order_of_contenders_alternates_between_rounds(tmp_path: Path) -> None:
    order: list[str] = []

    class Noting(Fake):
        def measure(self, cell: Cell) -> Result:
            order.append(self.name)
            return super().measure(cell)

    stream.run([Noting("a", 1), Noting("b", 1)], stream.Settings(2, 1.0, [KB], tmp_path))
    assert order == ["a", "b", "b", "a"]


def test_contender_names_are_unique_and_include_the_references() -> None:
    everyone = contenders()
    assert len({one.name for one in everyone}) == len(everyone)
    assert set(table.REFERENCES) <= {one.row for one in everyone}


def test_mpi_ceiling_uses_the_mpirun_placement_of_jobs() -> None:
    plan: Any = SimpleNamespace(world=2, run="run", fault_tolerance="ulfm", trainers_at_least=0)
    assert mpirun_command(Path("mpirun"), Path("shim"), plan)[3:-2] == PLACEMENT


@pytest.mark.parametrize("size", stream.SIZES)
def test_warm_up_samples_are_complete_batches_and_fill_the_queue(tmp_path: Path, size: int) -> None:
    cell = Cell.plan(tmp_path, size, 2.0)
    assert cell.warm % BATCH == 0
    assert cell.warm >= cell.queue >= 2 * BATCH
    cell.write()
    assert Cell.read(tmp_path) == cell


def test_producer_waits_at_the_gate_and_stops_on_request(tmp_path: Path) -> None:
    Gate.make(tmp_path)
    consumer, steps = Gate(tmp_path, 0.05), Gate(tmp_path, 0.05).steps(warm=3)
    assert list(itertools.islice(steps, 3)) == [0, 1, 2]
    with pytest.raises(GateError):
        next(steps)
    steps = Gate(tmp_path, 0.05).steps(warm=1)
    assert next(steps) == 0
    consumer.open()
    assert next(steps) == 1
    consumer.stop()
    assert list(steps) == []


def test_batches_made_before_the_clock_starts_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cell, now = Cell(tmp_path, KB, 0.05, warm=BATCH, queue=BATCH), [0.0]
    monkeypatch.setattr("benchmarks.consume.time", SimpleNamespace(monotonic=lambda: now[0], sleep=lambda _: None))
    Gate.make(tmp_path)

    def batches() -> Iterator[torch.Tensor]:
        for first in range(0, 5 * BATCH, BATCH):
            yield torch.arange(first, first + BATCH, dtype=torch.float32)[:, None].repeat(1, 4)
            if first == 3 * BATCH:
                now[0] += cell.seconds

    consume(batches(), cell, Gate(tmp_path, 1.0), ahead=2)
    assert json.loads((tmp_path / "result.json").read_text())["samples"] == 2 * BATCH


def test_a_process_that_fails_ends_the_others(tmp_path: Path) -> None:
    cell = Cell.plan(tmp_path, KB, 0.1)
    bad = [sys.executable, "-c", "import sys; sys.exit('what went wrong')"]
    with pytest.raises(BenchmarkError, match="what went wrong"):
        run_processes([bad, ["sleep", "60"]], cell)


def test_a_result_is_that_of_the_last_process(tmp_path: Path) -> None:
    cell = Cell.plan(tmp_path, KB, 0.1)
    code = f"import json; json.dump({{'samples': 64, 'seconds': 0.5}}, open({json.dumps('result.json')}, 'w'))"
    assert run_processes([[sys.executable, "-c", code]], cell) == Result(64, 0.5)


def test_exponent_of_growth_is_fitted() -> None:
    assert cases.exponent([(1, 5.0), (2, 10.0), (8, 40.0)]) == pytest.approx(1.0)
    assert cases.exponent([(1, 8.0), (4, 2.0)]) == pytest.approx(-1.0)
    assert cases.exponent([(10, 3.0), (1000, 3.0)]) == pytest.approx(0.0)
    assert cases.exponent([(2, 3.0), (2, 4.0)]) is None


def test_cases_are_measured_in_turn_and_failures_named(tmp_path: Path) -> None:
    order: list[str] = []
    rendered: list[Path] = []

    def measure(name: str, value: float) -> dict[str, float]:
        order.append(name)
        if order.count("b") == 1 and name == "b":
            raise BenchmarkError("a reason")
        return {"s": value * (1 + order.count("a"))}

    both = [cases.Case("a", lambda: measure("a", 1.0)), cases.Case("b", lambda: measure("b", 2.0))]
    failed = cases.run_rounds("x", both, cases.Settings(3, 1.0, tmp_path), rendered.append)
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert failed == ["b, round 1: failed"] and rendered == [tmp_path] * 3
    contents, results = cases.load(tmp_path, "x")
    assert results.spread("a", "s") == Spread(3.0, 2.0, 4.0)
    assert results.ratio("b", "a", "s") == Spread(pytest.approx(1.6666, rel=1e-3), pytest.approx(4 / 3), 2.0)
    assert contents["settings"] == "3 rounds of 1 s each, alternated."


def test_benchmarks_are_chosen_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    names = [one.NAME for one in benchmarks()]
    first = ["scheduler", "dispatch", "failure", "meshes", "producers", "publishing", "inference", "batches", "rows"]
    first += ["loaders"]
    assert names == [*first, "edges", "training", "growth", "ranks"]
    everything, everyone = choose(None, True), len(contenders())
    assert [one.NAME for one in everything.others] == names and len(everything.contenders) == everyone
    others = [[one.NAME for one in choose(only).others] for only in (None, ["growth"], ["pyzmq"])]
    assert others == [[], ["growth"], []]
    front_page = choose(None)
    assert [len(choose(only).contenders) for only in (["growth"], ["stream"], ["front", "growth"])] == [
        0, everyone, len(front_page.contenders),
    ]  # fmt: skip
    assert {one.row for one in front_page.contenders} == {row for rows in front.ROWS.values() for row in rows}
    assert (front_page.file, everything.file, choose(["pyzmq"]).file) == ("front", "stream", "stream")
    assert {one.row for one in choose(["pyzmq", "failure"]).contenders} == {"pyzmq, pickle", "pyzmq, raw"}
    assert main(["--list", "--only", "failure"]) == 0
    assert capsys.readouterr().out.startswith("failure: from kill -9")


def test_the_scheduler_alone_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """The benchmark sends the messages that the scheduler needs today."""
    monkeypatch.setattr(scheduling, "SIMULATIONS", 100_000)
    found = scheduling.measure(groups=100, seconds=0.05)
    assert found["per_second"] > 1000 and 1 < found["cpu_us"] < 1000
    assert 1 < found["queue_mb"] < 300


def small_parts(store: Path) -> Path:
    rows.write_parts(store, 20_000)
    return store


@pytest.mark.full
@pytest.mark.parametrize(
    "module", ["training", "growth", "failure", "dispatch", "producers", "batches", "rows", "loaders"]
)
def test_one_case_of_each_benchmark_is_measured(module: str, tmp_path: Path) -> None:
    (benchmark,) = choose([module]).others
    measured: dict[str, Any] = {
        "training": lambda: benchmark.measure("small", "stream, fifo", 0.2),  # type: ignore[attr-defined]
        "growth": lambda: benchmark.measure("trainers", 2, 0.2),  # type: ignore[attr-defined]
        "failure": lambda: benchmark.measure("spare", 2),  # type: ignore[attr-defined]
        "dispatch": lambda: benchmark.measure(3, 0.2),  # type: ignore[attr-defined]
        "producers": lambda: benchmark.measure("mpidata", 2, 1 << 20, 0.2),  # type: ignore[attr-defined]
        "batches": lambda: benchmark.measure("mpidata.DataLoader", "1 MB", 0.2),  # type: ignore[attr-defined]
        "rows": lambda: rows.measure("FileDataset, npy", small_parts(tmp_path)),
        "loaders": lambda: benchmark.measure(2, 2, small_parts(tmp_path)),  # type: ignore[attr-defined]
    }
    found = measured[module]()
    assert all(value >= 0 for value in found.values()) and any(value > 0 for value in found.values()), found


def test_time_of_an_unfinished_put_counts(tmp_path: Path) -> None:
    Board.make(tmp_path)
    board, other = Board(tmp_path, 1.0), Board(tmp_path, 1.0)
    began = time.monotonic()
    board.begin_put(0)
    time.sleep(0.02)
    board.end_put(0)
    took, held = time.monotonic() - began, other.held_s(2)
    assert 0.02 <= held <= took and other.held_s(2) == held
    board.begin_put(1)
    time.sleep(0.01)
    assert other.held_s(2) >= held + 0.01


@pytest.mark.parametrize("size", producers.SIZES)
@pytest.mark.parametrize("count", [*producers.PRODUCERS, MOST_PRODUCERS])
def test_warm_up_samples_of_many_producers_are_complete_batches(tmp_path: Path, size: int, count: int) -> None:
    cell = plan(tmp_path, size, count, 1.0)
    assert count * cell.warm % producers.BATCH == 0
    assert cell.queue >= 2 and count * cell.queue >= 2 * producers.BATCH


@pytest.mark.parametrize("few", ["--pairs", "--most"])
def test_single_pair_is_refused(few: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        against.main(["--edges", "lent", few, "1"])
    assert "one pair has no interval" in capsys.readouterr().err


def test_figures_without_a_limit_are_measured_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    values = iter([0.09, 0.12, 0.08, 40_000.0, 41_000.0, 42_000.0])
    alone = [edges.Figure("idle", "", lambda: next(values), 0.1, True)]
    alone.append(edges.Figure("dispatches 2", "", lambda: next(values), 50_000, False))
    monkeypatch.setattr(edges, "figures", lambda seconds: alone)
    assert against.main(["--edges", "idle", "--pairs", "2", "--most", "3"]) == 0
    assert against.main(["--edges", "dispatches 2", "--pairs", "3", "--most", "3"]) == 1
    told = capsys.readouterr().out
    assert "idle: 0.09 (0.08 to 0.12), 3 times, goal 0.1: met\n" in told
    assert "dispatches 2: 4.1e+04 (4e+04 to 4.2e+04), 3 times, goal 50000: missed\n" in told


def test_producers_benchmark_skips_missing_contenders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producers, "measure", lambda way, count, *_: {"samples_per_s": 10.0 * count, "held": 0.5})
    monkeypatch.setattr(producers, "_missing", lambda way: "no server" if way == "Redis" else None)
    assert producers.run(cases.Settings(2, 1.0, tmp_path)) == ["Redis: no server"]
    values = json.loads((tmp_path / "producers.json").read_text())["values"]
    assert values["mpidata, 16 of 32 MB"] == {"samples_per_s": [160.0] * 2, "held": [0.5] * 2}
    assert len(values) == 4 * len(producers.PRODUCERS) * len(producers.SIZES)


@pytest.mark.full
def test_two_jobs_take_turns() -> None:
    stream = [Way(ROOT, ["samples.window=2"]), Way(ROOT)]
    for ways in (stream, [Way(ROOT, special="batches")] * 2):
        ratios = pairs.pair(ways, 8192, 3, 0.02)
        assert len(ratios) == 3 and all(0.05 < ratio < 20 for ratio in ratios)


@pytest.mark.full
@pytest.mark.parametrize("edge", edges.EDGES, ids=lambda edge: edge.name)
def test_an_edge_and_its_limit_take_turns(edge: edges.Edge) -> None:
    ratios = pairs.pair([edge.ours, edge.limit], next(iter(edge.goals)), 2, 0.02)
    assert len(ratios) == 2 and all(ratio > 0 for ratio in ratios)


@pytest.mark.full
@pytest.mark.parametrize("kind", ranks.KINDS)
def test_ranks_are_measured_with_both_mpis(kind: str, require: Callable[[str], str]) -> None:
    require("strace")
    require("mpicc.mpich")
    for mpi in ranks.mpis([]):
        few, more = (ranks.measure(mpi, kind, count) for count in (2, 4))
        assert 0.01 < few["first_s"] <= few["end_s"] < 60 and 1 < few["rank_mb"] < 200
        assert 20 < few["files"] < more["files"] < 20_000


def test_missing_mpich_is_reported_by_the_ranks_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks.shutil, "which", {"mpicc.mpich": "/usr/bin/mpicc.mpich"}.get)
    missing: list[str] = []
    monkeypatch.setattr(ranks, "find_mpirun", lambda: Path("mpirun"))
    assert [mpi.name for mpi in ranks.mpis(missing)] == ["Open MPI"]
    assert missing == ["MPICH: no mpirun.mpich and mpicc.mpich; `make test-packages` installs them"]


def test_opened_files_are_counted_from_strace_output() -> None:
    table = "    calls    errors syscall\n--------- --------- --------\n     1084       304 openat\n"
    assert ranks.opened(f"{table}        6           open\n     1090       304 total\n") == 786
    assert ranks.opened("     1090           total\n") == 1090


@pytest.mark.full
def test_ranks_that_start_and_wait_are_measured() -> None:
    assert waiting_ranks.first_dispatch_s(3) > 0.2 and waiting_ranks.start_bare_s(3) > 0.2
    assert 0 < waiting_ranks.idle_share(3) < 2


def test_as_fast_is_judged_by_the_median_and_its_interval() -> None:
    even = pairs.Estimate.of([0.99, 1.01, 1.0, 1.0, 1.02, 0.98, 1.0, 1.01, 0.99, 1.0] * 2)
    assert even.median == 1.0 and even.known and even.as_fast and even.pairs == 20
    slower = pairs.Estimate.of([0.90, 0.91, 0.92, 0.93, 0.94] * 4)
    assert slower.known and not slower.as_fast
    wide = pairs.Estimate.of([0.5, 1.5] * 10)
    assert not wide.known
