"""The plot of the parameters, for values with little or no spread."""

from pathlib import Path

import numpy as np
import pytest
from made_run import MadeRun
from matplotlib import pyplot

from mpidata.reporting.parameters import _histogram, draw_parameters
from mpidata.reporting.reading.run_snapshot import look_at


@pytest.mark.parametrize(
    "values", [[1e25] * 3, [0.0, 5e-324], [9007199254740992.0, 9007199254740994.0], [0.0, 0.0], [-1e-300, 1e300]]
)
def test_histogram_draws_extreme_values(values: list[float]) -> None:
    made, axis = pyplot.subplots()
    _histogram(axis, np.array(values))
    made.canvas.draw()
    assert axis.patches or axis.lines
    pyplot.close(made)


def test_largest_and_smallest_ranges_are_drawn(tmp_path: Path) -> None:
    run = MadeRun(tmp_path)
    run.losses(4)
    wide, small, loss = [-1.7e308, 1.7e308, 0.0, 1e300], [1e-320, 2e-320, 5e-324, 0.0], [1.7e308, -1.7e308, 1.0, 5e-324]
    rows = [f"{i},{wide[i]},{small[i]}" for i in range(4)]
    (run.path / "parameters.csv").write_text("\n".join(["simulation,wide,small", *rows, ""]))
    losses = (run.path / "losses.csv").read_text().splitlines()
    changed = [",".join([*row.split(",")[:2], str(loss[i]), *row.split(",")[3:]]) for i, row in enumerate(losses[1:])]
    (run.path / "losses.csv").write_text("\n".join([losses[0], *changed, ""]))
    assert "4 of 4 simulations by their parameters wide, small" in draw_parameters(look_at(run.path))
