"""Parts of torch only where they are used: torch itself imports them for what a plain script does not need.

They are half of the processor time of a short script that trains, and the tests start some hundred of them.
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
    """In the place of a module, until somebody asks for more than this."""

    needs: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__path__":  # asked for by `inspect`, of all modules
            raise AttributeError(name)
        for needed in self.needs:
            _load(needed)
        return getattr(_load(self.__name__), name)


class _LateDynamo(_Late):
    """What optimizers and DDP take of torch._dynamo where nothing is compiled."""

    needs = ("torch._meta_registrations",)  # what is compiled is tried out on meta tensors first
    utils = types.SimpleNamespace(get_optimize_ddp_mode=lambda: "ddp_optimizer")
    trace_rules = types.SimpleNamespace(clear_lru_cache=lambda: None)

    @staticmethod
    def graph_break(*_: Any, **__: Any) -> None:
        """Do nothing, as the real one where nothing is compiled."""

    @staticmethod
    def disable(function: Callable[..., Any], *_: Any, **__: Any) -> Callable[..., Any]:
        """Give the function itself."""
        return function


class _SetsMetaclass:
    """Sets the class of torch.Generator's class, which nobody may make without, as torch comes to its last imports."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None) -> None:
        if fullname == "torch.func":
            sys.meta_path.remove(self)
            base = importlib.import_module("torch._opaque_base")
            importlib.import_module("torch._C")._set_generator_metaclass(base.OpaqueBaseMeta)


def put_off() -> None:
    """Put the imports off; for the start of a script."""
    sys.modules["torch._dynamo"] = _LateDynamo("torch._dynamo")
    for name in ("torch._meta_registrations", "torch.export"):
        sys.modules[name] = _Late(name)
    sys.meta_path.insert(0, _SetsMetaclass())
