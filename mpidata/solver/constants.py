"""Constants: what a Python function yields for fields that are put once per simulation."""

from __future__ import annotations

from typing import Any

__all__ = ["Constants"]


class Constants(dict[str, Any]):
    """Fields with ``per: simulation``, which a function of `solvers.function` yields before its first step.

    Parameters
    ----------
    **fields : array_like
        By name, in the same forms as in a step: an array, ``(array, start)``, or a list of such blocks.
    """

    def __init__(self, /, **fields: Any) -> None:
        super().__init__(fields)
