"""The missing flux of the coarse grid at a face, from the values of the two cells on either side of it."""

import torch
from torch import nn
from torch.func import functional_call

net = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))


def answer(inputs, weights):
    """Called by an inference rank for the solvers: maps any number of faces at once, [faces, 4] to [faces]."""
    lacking = functional_call(net, weights, inputs["stencils"])
    return {"fluxes": torch.clamp(lacking[..., 0], -0.2, 0.2)}
