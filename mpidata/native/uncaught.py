"""Ends scripts after an uncaught exception: reports it to the job, and skips MPI_Finalize, which would hang."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import NoReturn

from mpidata.errors import JobInterrupt, MpidataError

__all__ = ["describe", "end", "end_on_exception", "fail", "say_own_errors"]


def say_own_errors(folder: Path | None) -> None:
    """Make an uncaught error of mpidata print a sentence instead of its frames, which are the library's.

    Parameters
    ----------
    folder : Path or None
        Folder of the user's files: the sentence names the line in these.
    """
    previous = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, MpidataError):
            print(f"mpidata: {_with_place(str(error).strip(), error, folder)}", file=sys.stderr)
        elif isinstance(error, JobInterrupt):
            print(f"mpidata: Ctrl-C ended the loop of the script{_place(error, folder)}.", file=sys.stderr)
        else:
            previous(kind, error, trace)

    sys.excepthook = hook


def end_on_exception(folder: Path | None, report: Callable[[BaseException, str], None]) -> None:
    """Make an uncaught exception end this process at once with status 1, as MPI_Finalize would wait for other ranks.

    After Ctrl-C in `mpidata run` the process ends normally, with status 0, because others may still save their data.

    Parameters
    ----------
    folder : Path or None
        Folder of the user's files: the sentence names the line in these.
    report : callable
        Called with the exception and its sentence, after the traceback (for errors of mpidata: the sentence) has been
        printed.
    """
    say_own_errors(folder)
    previous = sys.excepthook
    process = os.getpid()

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        previous(kind, error, trace)
        _let_out()
        if isinstance(error, JobInterrupt):
            raise SystemExit(0)
        try:
            if os.getpid() == process:  # not in a forked child, which does not have MPI either
                report(error, describe(error, folder))
        finally:
            fail()

    sys.excepthook = hook


def fail(sentence: str = "") -> NoReturn:
    """End this process with status 1, without MPI_Finalize; prints the sentence to stderr, which is in the log."""
    if sentence:
        print(sentence, file=sys.stderr)
    end(1)


def end(status: int) -> NoReturn:
    """End this process, without MPI_Finalize."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(status)


def _let_out() -> None:
    """Print output that the hook's caller, torch.distributed, keeps until the hook returns, which it does not."""
    kept = sys.stderr
    if isinstance(kept, io.StringIO):
        print(kept.getvalue(), end="", file=sys.__stderr__, flush=True)


def describe(error: BaseException, folder: Path | None) -> str:
    """Return one sentence for an exception: `ValueError: no such thing (train.py line 7)`.

    Parameters
    ----------
    error : BaseException
        With its traceback.
    folder : Path or None
        The sentence names the innermost line in a file below this folder, if any; errors of mpidata name no other.
    """
    name = type(error).__name__
    lines = str(error).strip().splitlines() or [""]
    text = lines[0]
    for line in filter(str.strip, lines[1:]):  # torch: "Error(s) in loading state_dict for Net:", then the errors
        if not text.endswith(":"):
            break
        text += f" {line.strip()}"
    if text.startswith("Caught ") and "Original Traceback" in str(error):  # torch wraps errors of workers
        text = lines[-1].partition(": ")[2] or lines[-1]
    if isinstance(error, MpidataError):
        return _with_place(text, error, folder)
    return (f"{name}: {text}" if text else name) + _place(error, folder)


def _with_place(sentences: str, error: BaseException, folder: Path | None) -> str:
    place = _place(error, folder)
    return sentences.rstrip(".") + place if place else sentences


def _place(error: BaseException, folder: Path | None) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if folder and _is_below(frame.filename, folder)]
    named = own if isinstance(error, (MpidataError, JobInterrupt)) else own or frames  # the library's lines do not help
    return f" ({os.path.basename(named[-1].filename)} line {named[-1].lineno})" if named else ""


def _is_below(file: str, folder: Path) -> bool:
    if file.startswith("<"):  # not a file
        return False
    path = os.path.abspath(file)
    return path.startswith(f"{folder}{os.sep}") and "site-packages" not in path
