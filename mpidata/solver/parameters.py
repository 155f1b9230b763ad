"""The parameters of a simulation, as its program reads them."""

from __future__ import annotations

import ctypes
import os
from typing import Any

from mpidata.native.library import Library, check
from mpidata.run.plan import Plan

__all__ = ["Parameters"]


class Parameters(dict[str, Any]):
    """Parameters by name; outside a job, where the names are not known, each is read when it is requested."""

    def __init__(self, library: Library, plan: Plan | None) -> None:
        self._library = library
        texts = plan.texts if plan else {}
        read = {name: self._read(name) for name in (plan.told if plan else ())}
        super().__init__({name: texts[name][int(read[name])] if name in texts else read[name] for name in read})

    def _read(self, name: str) -> float:
        value = ctypes.c_double()
        check(self._library, self._library.mpidata_param(name.encode(), ctypes.byref(value)))
        return value.value

    def __missing__(self, name: str) -> float | str:
        """Read a parameter outside a job: a number, or a text."""
        variable = f"MPIDATA_PARAM_{name}"
        given = os.environ.get(variable, os.environ.get(variable.upper(), ""))
        self[name] = given if _is_text(given) else self._read(name)
        return self[name]  # type: ignore[no-any-return]


def _is_text(given: str) -> bool:
    """Return whether a value is a text, and not a malformed number."""
    return not set(given) <= set("+-.,_0123456789eE ") and given.strip("+-").lower() not in ("nan", "inf", "infinity")
