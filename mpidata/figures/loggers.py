"""The loggers of `log` in the job file, which receive the script's reports, in a thread of the scheduler."""

from __future__ import annotations

import importlib
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

import yaml

from mpidata.figures.pictures import Picture, read_pictures
from mpidata.run.folder import RunFolder
from mpidata.run.side_channel import say_aside

__all__ = ["Logger", "Loggers", "load_loggers"]

_MOST_WAITING = 100_000
_LOOK_S = 1.0  # between two looks for pictures


class Logger(Protocol):
    """The interface of what `log` names. All calls come from one thread."""

    def open(self, run: Path, job: dict[str, Any]) -> None:
        """Begin: `run` is the run folder, `job` the job file with all defaults."""

    def write(self, time: float, batch: int, values: dict[str, float]) -> None:
        """Take values of a batch, by name; `time` in Unix seconds."""

    def picture(self, time: float, batch: int, name: str, path: Path) -> None:
        """Take a picture, a PNG file in the run folder; a logger without this method gets none."""

    def close(self, status: str) -> None:
        """End: `status` is complete, failed or stopped."""


class Loggers:
    """Calls the loggers in a thread of its own, so that none of them can hold up the job.

    Parameters
    ----------
    names : iterable of str
        `tensorboard`, or `module:Class`, which is called without arguments.
    run : Path
        The run folder.
    job : mapping
        The job file with all defaults.
    say : callable, optional
        Called with each error message.

    Notes
    -----
    Call `write` and `close` from one thread. The first exception of each logger is reported, others are ignored; a
    logger that fails in `open` is not called again.
    """

    def __init__(
        self, names: Iterable[str], run: Path, job: Mapping[str, Any], say: Callable[[str], None] = say_aside
    ) -> None:
        self._names = tuple(names)
        self._run, self._job, self._say = run, dict(job), say
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._loggers: dict[str, Logger] = {}
        self._failed: set[str] = set()
        self._lost = 0
        self._thread: threading.Thread | None = None
        self._pictures = self._read_pictures() or set()  # those before a resume, which the loggers already have

    def start(self) -> None:
        """Open the loggers, in their thread; does nothing if there are none."""
        if self._names:
            self._thread = threading.Thread(target=self._work, name="loggers", daemon=True)
            self._thread.start()

    def write(self, at: float, batch: int, values: Mapping[str, float]) -> None:
        """Pass values of a batch to all loggers, without waiting for them; `at` in Unix seconds."""
        if self._thread is None:
            return
        if self._tasks.qsize() >= _MOST_WAITING:
            self._lost += 1
            return
        kept = dict(values)
        self._tasks.put(lambda: self._call(lambda logger: logger.write(at, batch, dict(kept))))

    def write_reports(self, at: float, values: Iterable[tuple[str, int, float]]) -> None:
        """Pass on the reports of a trainer: name, batch and value of each, in order."""
        if self._thread is None:
            return
        of, together = -1, dict[str, float]()
        for name, batch, value in values:
            if together and (batch != of or name in together):
                self.write(at, of, together)
                together = {}
            of, together[name] = batch, value
        if together:
            self.write(at, of, together)

    def close(self, status: str, within_s: float) -> None:
        """Close the loggers, and wait at most `within_s` seconds for them."""
        if self._thread is None:
            return
        self._tasks.put(self._look_for_pictures)
        self._tasks.put(lambda: self._call(lambda logger: logger.close(status)))
        self._tasks.put(None)
        self._thread.join(within_s)
        if self._lost:
            self._say(f"mpidata: {self._lost} values were not logged: the loggers of `log` were too slow.")
        if self._thread.is_alive():
            self._say(f"mpidata: the loggers of `log` had not ended {within_s:g} s after the job, and were abandoned.")
        self._thread = None

    def _work(self) -> None:
        for name in self._names:
            self._try(name, lambda name=name: self._open(name))  # type: ignore[misc]
        task: Callable[[], None] | None = _nothing
        looked = time.monotonic()
        while task is not None:
            task()
            if time.monotonic() - looked >= _LOOK_S:
                self._look_for_pictures()
                looked = time.monotonic()
            try:
                task = self._tasks.get(timeout=_LOOK_S)
            except queue.Empty:
                task = _nothing

    def _look_for_pictures(self) -> None:
        found = self._read_pictures()
        if found is None:
            return
        new, self._pictures = found - self._pictures, found
        for one in sorted(new, key=lambda picture: picture.time):
            self._call(lambda logger, one=one: _give_picture(logger, one))  # type: ignore[misc]

    def _read_pictures(self) -> set[Picture] | None:
        """Return the pictures in the run folder; None if it cannot be read now: the next look tries again."""
        try:
            return set(read_pictures(RunFolder(self._run))) if self._names else set()
        except OSError:
            return None

    def _call(self, method: Callable[[Logger], None]) -> None:
        for name, logger in self._loggers.items():
            self._try(name, lambda logger=logger: method(logger))  # type: ignore[misc]

    def _open(self, name: str) -> None:
        logger = _load(name, str(self._job.get("folder", ".")))
        logger.open(self._run, dict(self._job))
        self._loggers[name] = logger

    def _try(self, name: str, call: Callable[[], None]) -> None:
        try:
            call()
        except BaseException as error:  # also SystemExit, which would silently end the thread
            if name in self._failed:
                return
            self._failed.add(name)
            frame = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{type(error).__name__}: {error}, in {frame.filename} line {frame.lineno}"
            self._say(f"mpidata: the logger {name!r} of `log` fails with {where}. The job continues; reported once.")


def load_loggers(run: RunFolder) -> Loggers:
    """Make the loggers that a run's job file names, without opening them."""
    try:
        job = yaml.safe_load(run.job.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        job = None
    job = job if isinstance(job, dict) else {}
    return Loggers(job.get("log") or (), run.path, job)


def _nothing() -> None:
    pass


def _give_picture(logger: Logger, picture: Picture) -> None:
    if hasattr(logger, "picture"):
        logger.picture(picture.time, picture.batch, picture.name, picture.path)


def _load(name: str, folder: str) -> Logger:
    if name == "tensorboard":
        from mpidata.figures.tensorboard import TensorBoard

        return TensorBoard()
    module, _, attribute = name.partition(":")
    sys.path.insert(0, folder)
    try:
        logger: Logger = getattr(importlib.import_module(module), attribute)()
    finally:
        sys.path.remove(folder)
    return logger
