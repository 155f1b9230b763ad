"""Folders whose names are values of a column, `year=2019/`, as in Hive and Spark."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias
from urllib.parse import unquote

__all__ = ["Keys", "is_key", "key_and_name", "keys_of"]

Keys: TypeAlias = Mapping[str, "int | str | None"]
"""Columns of a part from its folders, and their value."""

_NULL = "__HIVE_DEFAULT_PARTITION__"
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")


def is_key(folder: str) -> bool:
    """Whether the name of a folder is that of a column and a value."""
    name, sign, value = folder.partition("=")
    return bool(name and sign and value)


def key_and_name(path: str) -> str:
    """Return the name of a file with those of its key folders, which does not depend on the data set's location."""
    *folders, name = path.split(os.sep)
    return os.sep.join([*filter(is_key, folders), name])


def keys_of(paths: Sequence[str]) -> list[Keys]:
    """Return the columns of each path: whole numbers if they are numbers in all paths, otherwise texts."""
    found = [_texts(path) for path in paths]
    names = {name for keys in found for name in keys}
    numbers = {name for name in names if all(_is_number(keys.get(name, "")) for keys in found)}
    return [{name: _value(text, name in numbers) for name, text in keys.items()} for keys in found]


def _value(text: str, is_number: bool) -> int | str | None:
    if text == _NULL:
        return None
    return int(text) if is_number else text


def _texts(path: str) -> dict[str, str]:
    folders = os.path.dirname(path).split(os.sep)
    pairs = (folder.partition("=") for folder in folders if is_key(folder))
    return {unquote(name): unquote(value) for name, _, value in pairs}


def _is_number(text: str) -> bool:
    return text == _NULL or (_WHOLE.fullmatch(text) is not None and abs(int(text)) < 1 << 63)
