"""Sizes in bytes with a unit, as job files have them: `2 GiB`."""

from __future__ import annotations

import re
from decimal import Decimal

__all__ = ["UNITS", "parse_size", "size_text"]

UNITS = {
    **{f"{letter}iB": 1024**power for power, letter in enumerate("KMGT", start=1)},
    **{f"{letter}B": 1000**power for power, letter in enumerate("KMGT", start=1)},
}
_SIZE = re.compile(rf"([0-9]{{1,15}}(?:\.[0-9]{{1,15}})?) ?({'|'.join(UNITS)})")


def parse_size(text: str) -> int | None:
    """Return the number of bytes, rounded down; None if the text is not a size."""
    found = _SIZE.fullmatch(text)
    return int(Decimal(found[1]) * UNITS[found[2]]) if found else None


def size_text(size: int) -> str:
    """Format bytes in the largest unit, a power of 1024, that gives at least 1, such as `1.5 GiB`."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if size >= UNITS[unit]:
            return f"{size / UNITS[unit]:.4g} {unit}"
    return f"{size} bytes"
