"""Imports parts of torch only when they are used: torch itself imports them for features a plain script does not need.

They take half of the CPU time of a short training script, and the tests start some hundred such scripts.
"""

import importlib
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any


def _load(name: str) -> types.ModuleType:
    if isinstance(sys.modules.get(name), _Late):
        del sys.modules[name]
    return importlib.import_module(name)


class _Late(types.ModuleType):
    """Stands in for a module until another of its attributes is read."""

    needs: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__path__":  # `inspect` reads these of all modules
            raise AttributeError(name)
        for needed in self.needs:
            _load(needed)
        return getattr(_load(self.__name__), name)


class _LateDynamo(_Late):
    """The parts of torch._dynamo that optimizers and DDP use if nothing is compiled."""

    needs = ("torch._meta_registrations",)  # compilation first runs on meta tensors
    utils = types.SimpleNamespace(get_optimize_ddp_mode=lambda: "ddp_optimizer")
    trace_rules = types.SimpleNamespace(clear_lru_cache=lambda: None)

    @staticmethod
    def graph_break(*_: Any, **__: Any) -> None:
        """Do nothing, like the real function if nothing is compiled."""

    @staticmethod
    def disable(function: Callable[..., Any], *_: Any, **__: Any) -> Callable[..., Any]:
        """Return the function itself."""
        return function


class _SetsMetaclass:
    """Sets the metaclass of torch.Generator, which needs one, when torch reaches its last imports."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None) -> None:
        if fullname == "torch.func":
            sys.meta_path.remove(self)
            base = importlib.import_module("torch._opaque_base")
            importlib.import_module("torch._C")._set_generator_metaclass(base.OpaqueBaseMeta)


def put_off() -> None:
    """Defer the imports; call this at the start of a script."""
    sys.modules["torch._dynamo"] = _LateDynamo("torch._dynamo")
    for name in ("torch._meta_registrations", "torch.export"):
        sys.modules[name] = _Late(name)
    sys.meta_path.insert(0, _SetsMetaclass())
