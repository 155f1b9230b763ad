"""The model of the loop campaign's inference ranks: each row identifies its weights and its call."""

import time

import torch
from loop.solving import OPTIONS


def answer(inputs, weights):
    """Return y = x (version mod 1000 + column) + 1, k + version, the call's id, and the call's number of rows."""
    x, k = inputs["x"], inputs["k"]
    time.sleep(OPTIONS["call_s"])
    call = torch.full((len(k),), time.time_ns(), dtype=torch.int64)
    y = x * (weights["weight"][0] % 1000 + torch.arange(3)).float() + 1
    return {"y": y, "v": k + weights["step"], "call": call, "n": torch.full_like(call, len(k)), "more": x}
