"""Exceptions of mpidata. Every message states what is wrong, where, and what to do."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = [
    "DAMAGED",
    "GiveUp",
    "JobFileError",
    "JobInterrupt",
    "LaunchError",
    "LibraryError",
    "MpidataError",
    "NotFiniteError",
    "RankDiedError",
    "SimulationCancelled",
    "StreamError",
    "as_line",
    "unforeseen",
]


class GiveUp(Exception):  # noqa: N818 what it does says more than what it is
    """Raised by a function of `solvers.function` to abandon a simulation, for example because it diverged."""


class SimulationCancelled(Exception):  # noqa: N818 nothing is wrong
    """The training script has cancelled this simulation: leave it, and continue with the next one."""


DAMAGED = (
    *(OSError, KeyError, ValueError, TypeError, IndexError, AttributeError, OverflowError, RuntimeError, MemoryError),
)
"""The exceptions of h5py, json and numpy for a file with unexpected contents."""


class MpidataError(Exception):
    """Base class of all errors that mpidata raises; the text is for the user, without a traceback."""


class JobFileError(MpidataError):
    """The job file, or a file it names, cannot be used.

    Parameters
    ----------
    problems : str or iterable of str
        The messages, one for each problem.

    Attributes
    ----------
    problems : tuple of str
        The same messages; the text of the error has one on each line.
    """

    def __init__(self, problems: str | Iterable[str]) -> None:
        self.problems: tuple[str, ...] = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        """Join the messages, one on each line."""
        return "\n".join(self.problems)


class StreamError(MpidataError):
    """The stream of samples cannot be set up, or ended with an error."""


class JobInterrupt(KeyboardInterrupt):
    """Ctrl-C in `mpidata run` has ended the loop of a training script; scripts see a KeyboardInterrupt."""


class LaunchError(MpidataError):
    """The job cannot be started, or was not started as planned."""


class LibraryError(MpidataError):
    """A call of libmpidata failed, or the library cannot be loaded."""


class NotFiniteError(LibraryError):
    """The time of a step is not finite: this try of the simulation has failed, and another one follows."""


class DeviceError(LibraryError):
    """A call of a device driver failed: this try of the simulation has failed, and another rank runs the next one."""


class RankDiedError(LibraryError):
    """A call of libmpidata failed because a rank has died, whose cause is reported elsewhere."""


def as_line(error: BaseException) -> str:
    """Return the text of an error as one line, or the name of its class if it has no text."""
    return " ".join(str(error).split()) or type(error).__name__


def unforeseen(what: str, error: BaseException, log: str) -> str:
    """Return the message about an unexpected error: a fault of mpidata, the system or the installation.

    Parameters
    ----------
    what : str
        What failed, as the start of a sentence.
    error : BaseException
        The error, whose class determines what to do.
    log : str
        What a bug report should contain.
    """
    fix = f"This is a bug in mpidata: report it with {log}."
    if isinstance(error, MemoryError):
        fix = "Give its host more memory."
    elif isinstance(error, OSError):
        fix = "The system refused a call: check its disks, permissions and limits."
    elif isinstance(error, ImportError):
        fix = "Reinstall mpidata and its dependencies for the Python that runs it."
    return f"{what} failed with {type(error).__name__}: {as_line(error)}. {fix}"
