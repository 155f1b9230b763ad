"""The random numbers of a sampler that continues after draws whose number of random numbers is unknown."""

import numpy as np

__all__ = ["jumped"]


def jumped(random: np.random.Generator, count: int) -> np.random.Generator:
    """Return a generator for use after `count` rows, whose numbers `random` does not draw.

    Parameters
    ----------
    random : numpy.random.Generator
        As `numpy.random.default_rng` makes it.
    count : int
        Number of rows; each count has numbers of its own (numpy.random.PCG64.jumped).
    """
    bits = random.bit_generator
    assert isinstance(bits, np.random.PCG64)
    return np.random.Generator(bits.jumped(count))
