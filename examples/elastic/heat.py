"""The heat equation on a rod of 64 points, with explicit steps."""

from collections.abc import Iterator

import numpy as np

STEPS = 50


def simulate(alpha: float) -> Iterator[tuple[float, dict[str, np.ndarray]]]:
    """Cool a rod that is hot in its middle, with diffusivity alpha."""
    temperature = np.zeros(64)
    temperature[24:40] = 1.0
    for step in range(STEPS):
        for _ in range(10):
            temperature[1:-1] += alpha * (temperature[:-2] - 2 * temperature[1:-1] + temperature[2:])
        yield step / STEPS, {"temperature": temperature}
