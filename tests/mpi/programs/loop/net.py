"""What inference ranks run in the campaign of the loop: each row tells which weights and which call it is of."""

import time

import torch
from loop.solving import OPTIONS


def answer(inputs, weights):
    """Answer with y = x (version mod 1000 + column) + 1, k + version, the call, and the rows of the call."""
    x, k = inputs["x"], inputs["k"]
    time.sleep(OPTIONS["call_s"])
    call = torch.full((len(k),), time.time_ns(), dtype=torch.int64)
    y = x * (weights["weight"][0] % 1000 + torch.arange(3)).float() + 1
    return {"y": y, "v": k + weights["step"], "call": call, "n": torch.full_like(call, len(k)), "more": x}
