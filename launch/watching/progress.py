"""What `mpidata run` shows while a job runs: its figures, and above them the output of the first trainer."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from rich.console import Console
from rich.live import Live
from rich.text import Text

from mpidata.launch.page.line import figures_line
from mpidata.launch.page.page import draw
from mpidata.launch.page.tail import Tail
from mpidata.launch.page.view import View
from mpidata.run.documents.documents import read_document
from mpidata.run.documents.types import PROGRESS
from mpidata.run.exits import without_noise
from mpidata.run.folder import RunFolder
from mpidata.run.stop import read_stop

__all__ = ["Aside", "Progress"]

_PLAIN_FIRST_S, _PLAIN_EVERY_S = 1.0, 5.0
_MOST_LINES = 20  # of the page
_JOIN_S = 20.0
_END_S = 10.0


class _Lines(Protocol):
    def lines(self, last: bool = False) -> list[str]: ...


class Aside(Tail):
    """Reports of the scheduler outside the run folder, except the summary, which is shown at the end."""

    def lines(self, last: bool = False) -> list[str]:
        """Return the lines since the last call."""
        return [line for line in super().lines(last) if not line.startswith("{")]


class _Script(Tail):
    """The output of a trainer, except lines that are only for its log."""

    def lines(self, last: bool = False) -> list[str]:
        """Return the lines since the last call."""
        return without_noise(super().lines(last))


class Progress:
    """Shows progress.json of a run: a live display on a terminal, else plain lines.

    Parameters
    ----------
    run : RunFolder
        Its folder; `progress` need not exist yet.
    trainer : Path
        Log of the first trainer, whose lines are shown immediately.
    console : rich.console.Console
        Where to show them.
    within_s : float
        Seconds in which the job must end after it is asked to stop.
    more : sequence, optional
        Other sources of lines to show immediately, with a method like `Tail.lines`.
    clock : callable, optional
        Returns seconds.

    Notes
    -----
    A context manager; the thread that entered it calls `look` several times a second. The console writes to a
    `FailsafeStream`, so that the job continues without a display if the reader of the output goes away.

    If the figures change, a plain line is written every 5 s; after the first batch immediately, then with pauses that
    double from 1 s, so that a short job also shows some.
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
        self._tails: list[_Lines] = [_Script(trainer), Tail(run.idle_log), *more]
        self._within_s = within_s
        self._console = console
        self._clock = clock
        # Only `look` refreshes it: another thread would write between the trainer's lines.
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        self._view = View(run)
        self._shown = ("", clock())
        self._pause_s = 0.0  # before the next plain line, once there are batches
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
        """Show the rest and remove the display."""
        self.look(last=True)
        if self._live is not None:
            self._live.stop()

    def look(self, last: bool = False) -> None:
        """Show what is new; with `last`, also an incomplete last line of the trainer."""
        for tail in self._tails:
            if lines := tail.lines(last):
                self._console.print(Text.from_ansi("\n".join(lines)), soft_wrap=True)
        figures = read_document(self._run.progress, PROGRESS)[0] or None
        self._explain_silence(figures is not None)
        self._explain_stop()
        if figures is None:
            return
        if self._live is not None:
            self._view.look()
            height = min(_MOST_LINES, self._console.height // 2)
            self._live.update(draw(self._view, self._console.width, height, self._console.encoding), refresh=True)
            return
        self._show_plain(figures)

    def _show_plain(self, figures: dict[str, Any]) -> None:
        line, (shown, at) = figures_line(figures), self._shown
        trains = any((*figures["batches"], *figures.get("loaded", {}).get("batches", [])))
        if line == shown or self._clock() - at < (self._pause_s if trains else _PLAIN_EVERY_S):
            return
        self._console.print(Text(line), soft_wrap=True)
        self._shown = (line, self._clock())
        if trains:
            self._pause_s = min(max(_PLAIN_FIRST_S, 2 * self._pause_s), _PLAIN_EVERY_S)

    def _explain_silence(self, joined: bool) -> None:
        """Print once what the job waits for: all ranks at the start, and at the end programs that still run."""
        now = self._clock()
        if not joined and now - self._began > _JOIN_S:
            self._say_once(
                "Still waiting for all ranks to join: trainers do so with MPIStreamDataset, DataLoader or FileDataset "
                "(or init_process_group), solvers with mpidata_init, loaders by themselves once torch is imported."
            )
        if self._ended is None and self._run.summary.exists():
            self._ended = now
        if self._ended is not None and now - self._ended > _END_S:
            self._say_once("The job's work is done; waiting for its programs to end.")

    def _explain_stop(self) -> None:
        asked = read_stop(self._run.stop)
        if asked is None:
            return
        then = ", after a checkpoint" if asked.checkpoint else ""
        if asked.interrupt:
            self._say_once(
                f"Ctrl-C: the training loops end with KeyboardInterrupt{then}. The job ends when the scripts end, "
                f"within {self._within_s:g} s. Press Ctrl-C again to end now."
            )
        else:
            self._say_once(
                f"{asked.name}: the job will write a checkpoint and end, within {self._within_s:g} s. A second "
                f"{asked.name} ends it immediately."
            )

    def _say_once(self, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            self._console.print(Text(sentence), soft_wrap=True)
