"""The work item of a loader, for reports if it dies: a text that is compared, and that people read.

C has ITEM_MAX bytes for it. If the text must be cut or changed, a hash of the whole text precedes it, so that different
items have different texts.
"""

from __future__ import annotations

import hashlib
import re

from mpidata.native import constants

__all__ = ["item_of", "text_of"]

_KEY_BYTES = 8
_MOST_BYTES = 4  # of a letter
_KEYED = re.compile(rf"[0-9a-f]{{{2 * _KEY_BYTES}}} ")
_CUT = "..."


def item_of(text: str) -> str:
    """Return the text of an item.

    Parameters
    ----------
    text : str
        Different for different items. If it is too long, its middle is omitted; unprintable characters are replaced.

    Returns
    -------
    str
        The text, after a hash and a blank if it was changed: fewer than `constants.ITEM_MAX` bytes of UTF-8 in one
        line.
    """
    room = constants.ITEM_MAX - 1
    fits = len(text) * _MOST_BYTES <= room or (len(text) <= room and len(text.encode(errors="replace")) <= room)
    if fits and text.isprintable() and not _KEYED.match(text):
        return text
    key = hashlib.blake2s(text.encode(errors="surrogatepass"), digest_size=_KEY_BYTES).hexdigest()
    line = text if text.isprintable() else "".join(letter if letter.isprintable() else "?" for letter in text)
    room -= len(key) + 1
    if len(line.encode()) > room:
        half = (room - len(_CUT)) // 2
        line = _first(line, half) + _CUT + _first(line[::-1], half)[::-1]
    return f"{key} {line}"


def text_of(item: str) -> str:
    """Return the text without the hash of `item_of`."""
    return item[2 * _KEY_BYTES + 1 :] if _KEYED.match(item) else item


def _first(text: str, most_bytes: int) -> str:
    return text.encode()[:most_bytes].decode(errors="ignore")
