"""A file that grows, read as it does."""

from __future__ import annotations

import codecs
from pathlib import Path

__all__ = ["Tail"]


class Tail:
    """New whole lines of a file that grows, and that need not be there yet.

    Parameters
    ----------
    path : Path
        A log.
    new : bool
        Whether what is in it already does not count.
    """

    def __init__(self, path: Path, new: bool = True) -> None:
        self._path = path
        self._offset = path.stat().st_size if new and path.exists() else 0
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
