"""Exceptions of mpidata. Every message says what is wrong, where, and what to do."""

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
    """To be raised by the function of `solvers.function`: this simulation has diverged, say, and is not tried again."""


class SimulationCancelled(Exception):  # noqa: N818 nothing is wrong
    """The training has cancelled this simulation: leave it, and go on with the next one."""


DAMAGED = (
    *(OSError, KeyError, ValueError, TypeError, IndexError, AttributeError, OverflowError, RuntimeError, MemoryError),
)
"""What h5py, json and numpy raise where a file does not hold what it should."""


class MpidataError(Exception):
    """Base of all errors that mpidata raises; its text is meant for the user, without a traceback."""


class JobFileError(MpidataError):
    """The job file, or a file it names, cannot be used.

    Parameters
    ----------
    problems : str or iterable of str
        The sentences, one for each thing that is wrong.

    Attributes
    ----------
    problems : tuple of str
        The same sentences; the text of the error has one a line.
    """

    def __init__(self, problems: str | Iterable[str]) -> None:
        self.problems: tuple[str, ...] = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        """Join the sentences, one a line."""
        return "\n".join(self.problems)


class StreamError(MpidataError):
    """The stream of samples cannot be set up, or ended with an error."""


class JobInterrupt(KeyboardInterrupt):
    """Ctrl-C in `mpidata run` has ended the loop of a training script; for scripts a KeyboardInterrupt."""


class LaunchError(MpidataError):
    """The job cannot be started, or was not started the way it was planned."""


class LibraryError(MpidataError):
    """A call of libmpidata failed, or the library cannot be loaded."""


class NotFiniteError(LibraryError):
    """The time of a step is not finite: this try of the simulation has failed, and another one follows."""


class DeviceError(LibraryError):
    """A call of a device's driver failed: this try of the simulation has, too, and another rank makes the next one."""


class RankDiedError(LibraryError):
    """A call of libmpidata failed as a rank has died: why it has is known elsewhere."""


def as_line(error: BaseException) -> str:
    """Give the text of an error as one line, or its kind where it has none."""
    return " ".join(str(error).split()) or type(error).__name__


def unforeseen(what: str, error: BaseException, log: str) -> str:
    """Make the sentence on an error that nothing foresaw: mpidata's fault, if not the system's or the installation's.

    Parameters
    ----------
    what : str
        What failed, as the start of a sentence.
    error : BaseException
        Whose kind decides what is to be done.
    log : str
        What a report is to hold.
    """
    fix = f"That is a fault of mpidata: report it with {log}."
    if isinstance(error, MemoryError):
        fix = "Give its host more memory."
    elif isinstance(error, OSError):
        fix = "That is the system's answer: check its disks, permissions and limits."
    elif isinstance(error, ImportError):
        fix = "Install mpidata anew, with all that it needs, for the Python that runs it."
    return f"{what} failed with {type(error).__name__}: {as_line(error)}. {fix}"
