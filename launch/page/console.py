"""A console for texts of programs, which may contain characters that control a terminal or reorder its lines."""

from __future__ import annotations

import re
from typing import Any

from rich.console import Console
from rich.text import Text

__all__ = ["SafeConsole", "escaped"]

# Control characters except newline and tab, separators of lines, and those that reorder text (bidi).
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


class SafeConsole(Console):
    """A console that prints such characters as escape sequences."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as `Console` does, with each Text escaped."""
        super().print(*(escaped(one) if isinstance(one, Text) else one for one in objects), **options)


def escaped(text: Text) -> Text:
    r"""Return a text in which characters that control a terminal are readable: `\x1b`, `\u202e`."""
    found = list(_UNSAFE.finditer(text.plain))
    if not found:
        return text
    parts = text.divide(edge for match in found for edge in match.span())
    for part in parts:
        part.plain = _UNSAFE.sub(lambda match: match[0].encode("unicode_escape").decode(), part.plain)
    return Text(end=text.end).join(parts)
