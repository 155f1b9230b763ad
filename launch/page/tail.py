"""A file that is read while it grows."""

from __future__ import annotations

import codecs
from pathlib import Path

__all__ = ["Tail"]


class Tail:
    """Reads the new complete lines of a growing file, which need not exist yet.

    Parameters
    ----------
    path : Path
        A log.
    new : bool
        Whether to skip what the file already contains.
    """

    def __init__(self, path: Path, new: bool = True) -> None:
        self._path = path
        self._offset = path.stat().st_size if new and path.exists() else 0
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._rest = ""

    def lines(self, last: bool = False) -> list[str]:
        """Return the lines since the last call; with `last`, also one that is not complete yet.

        Of a line that was overwritten with carriage returns, only the final text is returned.
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
