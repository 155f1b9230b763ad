"""torch._dynamo only where it is used: torch's optimizers and DDP import it for what a plain script does not need.

This is two fifths of the processor time of a short script that trains, and the tests start some hundred of them.
"""

import importlib
import sys
import types
from collections.abc import Callable
from typing import Any

_NAME = "torch._dynamo"


class _Stand(types.ModuleType):
    """In the place of torch._dynamo, until somebody asks for more than this."""

    utils = types.SimpleNamespace(get_optimize_ddp_mode=lambda: "ddp_optimizer")
    trace_rules = types.SimpleNamespace(clear_lru_cache=lambda: None)

    @staticmethod
    def graph_break(*_: Any, **__: Any) -> None:
        """Do nothing, as the real one where nothing is compiled."""

    @staticmethod
    def disable(function: Callable[..., Any], *_: Any, **__: Any) -> Callable[..., Any]:
        """Give the function itself."""
        return function

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__path__":  # asked for by `inspect`, of all modules
            raise AttributeError(name)
        if sys.modules.get(_NAME) is self:
            del sys.modules[_NAME]
        return getattr(importlib.import_module(_NAME), name)


def put_off() -> None:
    """Put the import off; for the start of a script."""
    sys.modules[_NAME] = _Stand(_NAME)
