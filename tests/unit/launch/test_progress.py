import io
import json
from pathlib import Path
from typing import IO, Any, cast

import pytest
from rich.console import Console

from mpidata.launch.page.line import figures_line
from mpidata.launch.page.tail import Tail
from mpidata.launch.watching.progress import Progress
from mpidata.run.failsafe_output import FailsafeStream
from mpidata.run.folder import RunFolder


def _figures(**more: Any) -> dict[str, Any]:
    return {
        "simulations": {"requested": 9, "running": 1, "complete": 2, "failed": 0},
        "samples": {"received": 20, "per_second": 5.4, "validation": 4, "per_trainer": [12, 8]},
        "batches": [4, 5],
        "fill": [0.5, 0.251],
        "capacity": 8,
        "bytes": 1500,
        "report": {"loss": 0.123456, "other": None},
        "training": {"loss": {"first": 1.0, "last": 0.123456}, "other": {"first": None, "last": None}},
        "seconds": 12.3,
    } | more


def test_tail_returns_complete_lines_once(tmp_path: Path) -> None:
    path = tmp_path / "log"
    tail = Tail(path)
    assert tail.lines() == []
    with open(path, "ab", buffering=0) as file:
        file.write(b"one\ntw")
        assert tail.lines() == ["one"]
        file.write("o é".encode()[:-1])
        assert tail.lines() == []
        file.write("é".encode()[-1:] + b"\n10%\r20%\rall\r\n\nrest")
        assert tail.lines() == ["two é", "all", ""]
        assert tail.lines() == []
        assert tail.lines(last=True) == ["rest"]
        assert tail.lines(last=True) == []


def test_progress_line_shows_the_figures() -> None:
    expected = "12 s, simulations 2/9, samples 20 (5/s), fill 50% 25%, batches 4 5, loss 0.1235, other nan"
    assert figures_line(_figures()) == expected
    failed = _figures(simulations={"requested": 9, "running": 1, "complete": 2, "failed": 3})
    assert "simulations 2/9, failed 3, " in figures_line(failed)


@pytest.mark.parametrize("state", ["dead", "left", "spare"])
def test_progress_line_shows_the_state_of_trainers_that_do_not_train(state: str) -> None:
    assert ", fill 50% 25%, " in figures_line(_figures(trainers=["trains", "trains"]))
    assert f", fill {state} 25%, batches 4 5, " in figures_line(_figures(trainers=[state, "trains"]))


def test_progress_line_shows_parts_and_epochs_of_loaders() -> None:
    of_none = {
        "simulations": {"requested": 0, "running": 0, "complete": 0, "failed": 0},
        "fill": [0.0],
        "batches": [0],
        "report": {"loss": 0.5},
    }
    assert figures_line(_figures(**of_none)) == "12 s, loss 0.5"  # before a dataset is made
    reading = {"reading": {"parts": 7, "counted": 3, "read": 0}}
    assert figures_line(_figures(**of_none, loaded=reading)) == "12 s, counting parts 3/7, loss 0.5"
    reading["reading"] |= {"counted": 7, "read": 2}
    assert figures_line(_figures(**of_none, loaded=reading)) == "12 s, reading parts 2/7, loss 0.5"
    loaded = {"epoch": 3, "samples": 120, "per_second": 8.0, "batches": [6, 6], "wait_s": [1.25, 0.0]}
    told = "epoch 3, loaded 120 (8/s), batches 6 6, waited 1.2 0.0 s"
    assert figures_line(_figures(**of_none, loaded=loaded)) == f"12 s, {told}, loss 0.5"
    assert f"batches 4 5, {told}, loss" in figures_line(_figures(loaded=loaded))  # beside a stream


def _write(path: Path, **more: Any) -> None:
    path.write_text(json.dumps(_figures(**more)))


@pytest.mark.parametrize("trained", ["stream", "loaders"])
def test_plain_lines_are_printed_more_often_after_the_first_batch(tmp_path: Path, trained: str) -> None:
    now, output = [100.0], io.StringIO()
    progress, log = tmp_path / "progress.json", tmp_path / "log"
    with Progress(RunFolder(tmp_path), log, Console(file=output, width=20), clock=lambda: now[0]) as display:
        for second in range(35):
            now[0] = 100.0 + second
            batches = [0, int(second >= 7)]
            loaded = {"epoch": 1, "samples": 1, "per_second": 1.0, "batches": batches, "wait_s": [0.0, 0.0]}
            more = {"batches": batches} if trained == "stream" else {"batches": [0, 0], "loaded": loaded}
            _write(progress, seconds=min(second, 26), **more)
            if second == 3:
                log.write_text("[bold]epoch[/bold] 1 with a long line\n")
            display.look()
    lines = output.getvalue().splitlines()
    assert lines[0] == "[bold]epoch[/bold] 1 with a long line"
    assert [line.split(",")[0] for line in lines[1:]] == [f"{n} s" for n in (5, 7, 8, 10, 14, 19, 24, 26)]


def test_terminal_display_shows_figures_and_output(tmp_path: Path) -> None:
    output = io.StringIO()
    progress, log = tmp_path / "progress.json", tmp_path / "log"
    console = Console(file=output, force_terminal=True, width=100, legacy_windows=False)
    with Progress(RunFolder(tmp_path), log, console) as display:
        display.look()
        _write(progress)
        log.write_text("epoch 1")
        display.look()
        shown = output.getvalue()
        assert "2/9, 1 running" in shown and "50 % of 8, 4 batches" in shown and "25 % of 8, 5 batches" in shown
        assert "5, 20 in all" in shown and "0.1235" in shown and "nan" in shown and "epoch" not in shown
    assert "epoch 1\n" in output.getvalue()


def test_notices_of_idle_trainers_and_of_a_stop_are_shown_once(tmp_path: Path) -> None:
    output, log = io.StringIO(), tmp_path / "logs" / "rank-0001-trainer-0.log"
    log.parent.mkdir()
    idle = log.with_name("idle.log")
    idle.write_text("of the start before\n")
    with Progress(RunFolder(tmp_path), log, Console(file=output), within_s=20) as display:
        display.look()
        idle.write_text(idle.read_text() + "Trainer 1 has drawn nothing\n")
        (tmp_path / "stop").write_text("SIGINT\n")
        display.look()
        display.look()
    assert output.getvalue().splitlines() == [
        "Trainer 1 has drawn nothing",
        "Ctrl-C: the training loops end with KeyboardInterrupt, after a checkpoint. The job ends when the scripts end, "
        "within 20 s. Press Ctrl-C again to end now.",
    ]


def test_open_mpi_messages_about_a_death_are_not_displayed(tmp_path: Path) -> None:
    output, log = io.StringIO(), tmp_path / "log"
    with Progress(RunFolder(tmp_path), log, Console(file=output)) as display:
        log.write_text(
            "epoch 1\n[host:1] NBC_Progress: an error 75 was found during schedule\n\nepoch 2\n"
            "[host:2] OPAL ERROR: (null) in file runtime/ompi_mpi_finalize.c at line 170\n"
        )
        display.look()
    assert output.getvalue() == "epoch 1\nepoch 2\n"


def test_closed_output_does_not_end_the_display(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("one\n")
    output = io.StringIO()
    console = Console(file=cast(IO[str], FailsafeStream(output)))
    with Progress(RunFolder(tmp_path), log, console) as display:
        output.close()
        display.look()
        display.look()


@pytest.mark.parametrize("terminal", [True, False])
def test_largest_values_do_not_end_the_display(tmp_path: Path, terminal: bool) -> None:
    output, log, now = io.StringIO(), tmp_path / "log", [100.0]
    console = Console(file=output, force_terminal=terminal, width=100, legacy_windows=False)
    lists = {name: [1.0] for name in ("received", "drawn", "waited_s", "fill")}
    lines = [{"time": 1.0, "seconds": n, **lists, "report": {"loss": (-1) ** n * 1e308}} for n in range(3)]
    with Progress(RunFolder(tmp_path), log, console, clock=lambda: now[0]) as display:
        (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        for second in range(3):
            now[0] += 10
            log.write_text("".join(f"epoch {n}\n" for n in range(second + 1)))
            _write(tmp_path / "progress.json", report={"loss": 1e308}, seconds=second)
            display.look()
    assert all(f"epoch {n}\n" in output.getvalue() for n in range(3)) and "1e+308" in output.getvalue()


def test_other_errors_are_not_mistaken_for_a_closed_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> str:
        raise ValueError("cannot convert")

    monkeypatch.setattr("mpidata.launch.watching.progress.figures_line", fail)
    display = Progress(RunFolder(tmp_path), tmp_path / "log", Console(file=io.StringIO()))
    _write(tmp_path / "progress.json")
    with pytest.raises(ValueError, match="cannot convert"):
        display.look()
