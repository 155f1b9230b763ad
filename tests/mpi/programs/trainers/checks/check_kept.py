"""Trainer of keeps.c: checks that all values put have come, rounded to nearest."""

import numpy as np
import torch  # noqa: F401  # the statistics need it at the end, when an import is too late
from numpy_stream import stream

with np.errstate(all="ignore"):
    numbers = [1e300, -1e300, 1e-300, 1e-42, 0.1, -0.1, 3.4028235677973366e38, np.nan, np.nan, 1 + 2.0**-24]
    single = np.array([*numbers, 0, np.inf]).astype(np.float32)
seen = 0
for batch in stream(1):
    viscosity = batch["parameters"][0, 0]
    assert np.array_equal(batch["u"][0, :10], single[:10], equal_nan=True), batch["u"]
    assert batch["u"][0, 10] == np.float32(viscosity) and batch["u"][0, 11] == np.inf
    assert np.array_equal(batch["w"][0, :10], np.array(numbers), equal_nan=True)
    assert batch["w"][0, 10] == viscosity and 0.1 <= viscosity <= 0.4
    assert batch["whole"][0].tolist() == [2**31 - 1, -(2**31)]
    seen += 1
print("seen", seen)
