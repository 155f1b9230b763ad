"""The plot of the parameters, for values with little or no spread."""

import numpy as np
import pytest
from matplotlib import pyplot

from mpidata.reporting.parameters import _histogram


@pytest.mark.parametrize("values", [[1e25] * 3, [9007199254740992.0, 9007199254740994.0], [0.0, 0.0], [-1e-300, 1e300]])
def test_any_values_are_drawn(values: list[float]) -> None:
    made, axis = pyplot.subplots()
    _histogram(axis, np.array(values))
    made.canvas.draw()
    assert axis.patches or axis.lines
    pyplot.close(made)
