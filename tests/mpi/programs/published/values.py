"""The arrays that the tests publish: each element is a function of the version and its index."""

import numpy as np


def arrays(version: int, elements: int) -> dict[str, np.ndarray]:
    return {
        "weight": np.arange(elements, dtype=np.float64) + version,
        "bias": (np.arange(6, dtype=np.float32) - version).reshape(2, 3),
        "step": np.array(version),
        "none": np.empty((0, 3), np.int16),
    }


def check(found: dict[str, np.ndarray], version: int, elements: int) -> None:
    """Check every element; version 0 means that nothing is published."""
    wanted = arrays(version, elements) if version else {}
    assert list(found) == list(wanted), (version, list(found))
    for name, values in wanted.items():
        assert found[name].dtype == values.dtype and found[name].shape == values.shape, (name, found[name])
        assert (found[name] == values).all(), (version, name, found[name])
        assert not found[name].flags.writeable or not found[name].size
