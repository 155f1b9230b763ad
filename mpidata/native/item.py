"""What a loader works on, as it is told of one that dies: a key that is compared, and a text for people.

Both share the room that C has for them, ITEM_MAX, so the text may be cut; the key never is.
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


def item_of(kind: str, identity: bytes, text: str) -> str:
    """Name what a loader works on.

    Parameters
    ----------
    kind : str
        Of thing; another kind has other keys.
    identity : bytes
        What tells it from others of its kind, in full.
    text : str
        For people; its middle is left out where it is too long, and what is no letter is replaced.

    Returns
    -------
    str
        The key, a blank and the text: fewer than `constants.ITEM_MAX` bytes of UTF-8 in one line.
    """
    key = hashlib.blake2s(kind.encode() + b"\0" + identity, digest_size=_KEY_BYTES).hexdigest()
    line = text if text.isprintable() else "".join(letter if letter.isprintable() else "?" for letter in text)
    room = constants.ITEM_MAX - 1 - len(key) - 1
    if len(line) * _MOST_BYTES > room and len(line.encode()) > room:
        half = (room - len(_CUT)) // 2
        line = _first(line, half) + _CUT + _first(line[::-1], half)[::-1]
    return f"{key} {line}"


def text_of(item: str) -> str:
    """Return the text of what `item_of` has made."""
    return item[2 * _KEY_BYTES + 1 :] if _KEYED.match(item) else item


def _first(text: str, most_bytes: int) -> str:
    return text.encode()[:most_bytes].decode(errors="ignore")
