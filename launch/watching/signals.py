"""The signals that `mpidata run` handles."""

from __future__ import annotations

import signal
from types import FrameType

from mpidata.run.exits import signal_name
from mpidata.run.stop import StopRequest
from mpidata.startup import stop_early

__all__ = ["Signals"]

_ASKING = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)


class Signals:
    """Collects SIGINT, SIGTERM, SIGHUP and SIGUSR1 while it is entered; an ignored one (nohup) stays ignored.

    Parameters
    ----------
    checkpoint_on_interrupt : bool
        Whether the job writes a checkpoint after Ctrl-C, as it does after SIGTERM and SIGUSR1.

    Attributes
    ----------
    first : int or None
        The first signal that came.
    count : int
        Number of signals that came.

    Notes
    -----
    The main thread must enter it.
    """

    def __init__(self, checkpoint_on_interrupt: bool = False) -> None:
        self._checkpoint_on_interrupt = checkpoint_on_interrupt
        self.first: int | None = None
        self.count = 0
        self._before: dict[int, object] = {}

    @property
    def asks_to_stop(self) -> bool:
        """Whether the job should end in order."""
        return self.first in _ASKING

    @property
    def ends_at_once(self) -> bool:
        """Whether the job should end immediately: after SIGHUP, or a second signal."""
        return self.count > 1 or (self.first is not None and self.first not in _ASKING)

    @property
    def request(self) -> StopRequest:
        """The stop that the first signal requests."""
        assert self.first is not None
        return StopRequest(signal_name(self.first), self.first != signal.SIGINT or self._checkpoint_on_interrupt)

    def __enter__(self) -> Signals:
        """Take the signals."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
            if signal.getsignal(number) != signal.SIG_IGN or number == signal.SIGINT:
                self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the former handlers."""
        for number, handler in self._before.items():
            # The job has ended: a signal that comes now does not ask for another start of it.
            signal.signal(number, signal.SIG_DFL if handler is stop_early else handler)  # type: ignore[arg-type]

    def _take(self, number: int, _: FrameType | None) -> None:
        self.first = self.first or number
        self.count += 1
