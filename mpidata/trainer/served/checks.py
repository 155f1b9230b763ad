"""What mpidata.ParameterServer refuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel

from mpidata.errors import StreamError
from mpidata.servers.part import ELEMENTWISE
from mpidata.servers.table import SPARSE

__all__ = ["NAME", "check"]

NAME = "mpidata.ParameterServer"


def check(
    model: torch.nn.Module,
    parameters: Sequence[torch.nn.Parameter],
    has_rows: bool,
    optimizer: type[torch.optim.Optimizer],
    staleness: int,
    settings: dict[str, Any],
) -> None:
    """Raise StreamError where the arguments of ParameterServer make no sense; `has_rows`: of a ServedEmbedding."""
    if isinstance(model, DistributedDataParallel):
        raise StreamError(
            f"{NAME}: the model is a DistributedDataParallel, which adds up gradients in each step. Give the module "
            "itself."
        )
    if optimizer not in ELEMENTWISE:
        name = getattr(optimizer, "__name__", None) or f"a {type(optimizer).__name__}"
        usable = ", ".join(sorted(one.__name__ for one in ELEMENTWISE))
        raise StreamError(
            f"{NAME}: the optimizer is {name}. Give a class that steps each weight by itself, as the servers have "
            f"parts of them, and its settings by name: {usable}."
        )
    if isinstance(staleness, bool) or not isinstance(staleness, int) or staleness < 0:
        raise StreamError(f"{NAME}: staleness={staleness!r} is no whole number from 0 on. Give one.")
    if not (parameters or has_rows):
        raise StreamError(f"{NAME}: no parameter of the model requires a gradient.")
    for parameter in parameters:
        if not parameter.is_floating_point() or parameter.device.type != "cpu" or parameter.layout is not torch.strided:
            raise StreamError(
                f"{NAME}: a parameter is {parameter.dtype} ({parameter.layout}) on {parameter.device}. Use "
                "floating-point parameters in CPU memory."
            )
    try:
        optimizer([torch.nn.Parameter(torch.zeros(1))], **settings)
    except (TypeError, ValueError) as error:
        raise StreamError(f"{NAME}: {optimizer.__name__} does not take these settings: {error}.") from None
    if not has_rows:
        return
    if optimizer not in SPARSE:
        usable = ", ".join(sorted(one.__name__ for one in SPARSE))
        raise StreamError(f"{NAME}: the model has a ServedEmbedding, which goes with {usable}. Give one of them.")
    used, known = SPARSE[optimizer]
    if unknown := sorted(settings.keys() - set(known)):
        raise StreamError(
            f"{NAME}: the rows of a ServedEmbedding are stepped by {used.__name__}, with {', '.join(known)}. Leave out "
            f"{', '.join(unknown)}."
        )
