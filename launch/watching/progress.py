"""What `mpidata run` shows while a job goes on: its figures, and above them what the first trainer prints."""

from __future__ import annotations

import codecs
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from mpidata.run.folder import RunFolder

__all__ = ["Aside", "Progress", "Tail", "figures_line"]

_PLAIN_EVERY_S = 5.0
_JOIN_S = 20.0
_END_S = 10.0


class _Lines(Protocol):
    def lines(self, last: bool = False) -> list[str]: ...


class Tail:
    """New whole lines of a file that grows, and that need not be there yet.

    Parameters
    ----------
    path : Path
        A log. What is in it already is not new.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = path.stat().st_size if path.exists() else 0
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._rest = ""

    def lines(self, last: bool = False) -> list[str]:
        """Lines that have come since the last call; with `last`, also one that has no end yet.

        Of a line that was written over with carriage returns only the final text counts.
        """
        try:
            with open(self._path, "rb") as file:
                file.seek(self._offset)
                data = file.read()
        except OSError:
            data = b""
        self._offset += len(data)
        *whole, self._rest = (self._rest + self._decode(data, last)).split("\n")
        if last and self._rest:
            whole.append(self._rest)
            self._rest = ""
        return [line.rstrip("\r").rpartition("\r")[2] for line in whole]


class Aside(Tail):
    """What the scheduler says aside of the run folder, but for the summary, which is shown at the end."""

    def lines(self, last: bool = False) -> list[str]:
        """Lines that have come since the last call."""
        return [line for line in super().lines(last) if not line.startswith("{")]


class Progress:
    """Shows progress.json of a run: a display on a terminal, else a plain line every few seconds where it changes.

    Parameters
    ----------
    run : RunFolder
        Its folder; `progress` need not be there yet.
    trainer : Path
        Log of the first trainer, whose lines are shown as they come.
    console : rich.console.Console
        Where to show them.
    within_s : float
        Time in seconds that the job has for a last checkpoint.
    more : sequence, optional
        Others that give lines to be shown as they come, by a method as `Tail.lines`.
    clock : callable, optional
        Gives seconds.

    Notes
    -----
    To be entered; `look` is called some times a second by the thread that entered it. When the reader of the output has
    gone away, the job goes on without a display.
    """

    def __init__(
        self,
        run: RunFolder,
        trainer: Path,
        console: Console,
        within_s: float = 60.0,
        more: Sequence[_Lines] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._run = run
        self._tails: list[_Lines] = [Tail(trainer), Tail(run.idle_log), *more]
        self._within_s = within_s
        self._console = console
        self._clock = clock
        # Refreshed by `look` only: another thread would write to the terminal in the middle of the trainer's lines.
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        self._shown = ("", clock())
        self._quiet = False
        self._began = clock()
        self._ended: float | None = None
        self._said: set[str] = set()

    def __enter__(self) -> Progress:
        """Start the display."""
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Show the rest, and take the display away."""
        self.look(last=True)
        if self._live is not None:
            self._live.stop()

    def look(self, last: bool = False) -> None:
        """Show what is new; with `last`, also the trainer's last line that has no end."""
        if self._quiet:
            return
        try:
            self._show(last)
        except (BrokenPipeError, ValueError):  # ValueError: the stream is closed
            self._quiet = True

    def _show(self, last: bool) -> None:
        for tail in self._tails:
            if lines := tail.lines(last):
                self._console.print(Text.from_ansi("\n".join(lines)), soft_wrap=True)
        figures = _read(self._run.progress)
        self._explain_silence(figures is not None)
        self._explain_stop()
        if figures is None:
            return
        if self._live is not None:
            self._live.update(_display(figures), refresh=True)
            return
        line, (shown, at) = figures_line(figures), self._shown
        if line != shown and self._clock() - at >= _PLAIN_EVERY_S:
            self._console.print(Text(line), soft_wrap=True)
            self._shown = (line, self._clock())

    def _explain_silence(self, joined: bool) -> None:
        """Say once what is waited for: all ranks at the start, and at the end programs that work on."""
        now = self._clock()
        if not joined and now - self._began > _JOIN_S:
            self._say_once(
                "Still waiting for all ranks to join: trainers do so with MPIStreamDataset, DataLoader or FileDataset "
                "(or init_process_group), solvers with mpidata_init, loaders by themselves once torch is imported."
            )
        if self._ended is None and self._run.summary.exists():
            self._ended = now
        if self._ended is not None and now - self._ended > _END_S:
            self._say_once("The stream is over; waiting for the programs to end.")

    def _explain_stop(self) -> None:
        try:
            name = self._run.stop.read_text(encoding="utf-8").strip()
        except OSError:
            return
        asked = "Ctrl-C" if name == "SIGINT" else name
        self._say_once(
            f"{asked}: the job is to write a checkpoint and end, within {self._within_s:g} s. {asked} once more ends "
            "it at once."
        )

    def _say_once(self, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            self._console.print(Text(sentence), soft_wrap=True)


def figures_line(figures: dict[str, Any]) -> str:
    """Write the contents of progress.json as one line."""
    simulations, samples = figures["simulations"], figures["samples"]
    stream = [
        f"simulations {simulations['complete']}/{simulations['requested']}",
        f"samples {samples['received']} ({samples['per_second']:.0f}/s)",
        "fill " + " ".join(f"{100 * fill:.0f}%" for fill in figures["fill"]),
        "batches " + " ".join(map(str, figures["batches"])),
    ]
    if simulations["failed"]:
        stream.insert(1, f"failed {simulations['failed']}")
    parts = [f"{figures['seconds']:.0f} s", *(stream if simulations["requested"] else []), *_loaded(figures)]
    return ", ".join(parts + [f"{name} {_number(value)}" for name, value in figures["report"].items()])


def _loaded(figures: dict[str, Any]) -> list[str]:
    """Say how far the datasets on loaders are, where there are such."""
    loaded, parts = figures.get("loaded", {}), []
    if reading := loaded.get("reading"):
        doing = "counting" if reading["counted"] < reading["parts"] and not reading["read"] else "reading"
        done = reading["counted" if doing == "counting" else "read"]
        parts.append(f"{doing} parts {done}/{reading['parts']}")
    if "epoch" in loaded:
        parts += [
            f"epoch {loaded['epoch']}",
            f"loaded {loaded['samples']} ({loaded['per_second']:.0f}/s)",
            "batches " + " ".join(map(str, loaded["batches"])),
            "waited " + " ".join(f"{seconds:.1f}" for seconds in loaded["wait_s"]) + " s",
        ]
    return parts


def _display(figures: dict[str, Any]) -> Group:
    simulations, samples = figures["simulations"], figures["samples"]
    table = Table.grid(padding=(0, 2))
    values = [f"{name} {_number(value)}" for name, value in figures["report"].items()]
    loaded = _loaded(figures)
    if not simulations["requested"]:
        return Group(Text(", ".join([*loaded, f"{figures['seconds']:.0f} s", *values])))
    failed = f", {simulations['failed']} failed" if simulations["failed"] else ""
    table.add_row(
        "simulations",
        ProgressBar(total=max(1, simulations["requested"]), completed=simulations["complete"], width=30),
        f"{simulations['complete']}/{simulations['requested']}, {simulations['running']} running{failed}",
    )
    for trainer, fill in enumerate(figures["fill"]):
        table.add_row(
            f"trainer {trainer} fill",
            ProgressBar(total=1.0, completed=min(1.0, fill), width=30),
            f"{100 * fill:.0f} % of {figures['capacity']}, {figures['batches'][trainer]} batches",
        )
    line = f"{samples['received']} samples, {samples['per_second']:.0f}/s, {figures['seconds']:.0f} s"
    return Group(table, Text(", ".join([line, *loaded, *values])))


def _number(value: float | None) -> str:
    return "nan" if value is None else f"{value:.4g}"


def _read(path: Path) -> dict[str, Any] | None:
    """Read the figures, None where they are not there yet; the file is replaced whole, so it is read whole."""
    try:
        value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value
