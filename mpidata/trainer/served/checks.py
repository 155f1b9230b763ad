"""Check the arguments of mpidata.ParameterServer."""

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
    """Raise StreamError if the arguments of ParameterServer are invalid; `has_rows`: there is a ServedEmbedding."""
    if isinstance(model, DistributedDataParallel):
        raise StreamError(
            f"{NAME}: the model is a DistributedDataParallel, which sums gradients in each step. Give the module "
            "itself."
        )
    if optimizer not in ELEMENTWISE:
        name = getattr(optimizer, "__name__", None) or f"a {type(optimizer).__name__}"
        usable = ", ".join(sorted(one.__name__ for one in ELEMENTWISE))
        raise StreamError(
            f"{NAME}: the optimizer is {name}. Give a class that steps each weight separately, because each server has "
            f"only a part of them, and its settings by name: {usable}."
        )
    if isinstance(staleness, bool) or not isinstance(staleness, int) or staleness < 0:
        raise StreamError(f"{NAME}: staleness={staleness!r} is not an integer of at least 0. Give one.")
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
        raise StreamError(f"{NAME}: {optimizer.__name__} does not accept these settings: {error}.") from None
    if not has_rows:
        return
    if optimizer not in SPARSE:
        usable = ", ".join(sorted(one.__name__ for one in SPARSE))
        raise StreamError(f"{NAME}: the model has a ServedEmbedding, which supports {usable}. Give one of them.")
    used, known = SPARSE[optimizer]
    if unknown := sorted(settings.keys() - set(known)):
        raise StreamError(
            f"{NAME}: {used.__name__} steps the rows of a ServedEmbedding, with {', '.join(known)}. Leave out "
            f"{', '.join(unknown)}."
        )
