"""What a Python function yields of the fields that are put once a simulation."""

from __future__ import annotations

from typing import Any

__all__ = ["Constants"]


class Constants(dict[str, Any]):
    """Fields with ``per: simulation``, which a function of `solvers.function` yields before its first step.

    Parameters
    ----------
    **fields : array_like
        By name, in the forms in which a step has them: an array, ``(array, start)``, or a list of such blocks.
    """

    def __init__(self, /, **fields: Any) -> None:
        super().__init__(fields)
