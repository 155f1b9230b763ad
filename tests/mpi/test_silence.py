"""Solvers that are well are left alone, however long they rightly wait; those that hang are ended."""

from jobs import JobFolder

DRAIN = "import mpidata\nfor batch in mpidata.MPIStreamDataset(batch_size=4):\n    pass\n"

# Takes long before its first step, and in one simulation afterwards, too.
SLOW = """
import time
def simulate(alpha, simulation):
    time.sleep(3)
    for step in range(4):
        yield {"u": [[alpha] * 6] * 4}
        if simulation == 1 and step == 2:
            time.sleep(60)
"""


def test_a_slow_first_step_is_no_hang_but_a_slow_later_one_is(folder: JobFolder) -> None:
    folder.write(sim=SLOW, train=DRAIN)
    solvers = {"groups": 2, "function": "sim:simulate", "timeout_s": 1, "retries": 0}
    folder.job(solvers=solvers, parameters={"count": 2, "space": {"alpha": [0.0, 1.0]}})
    result = folder.run(timeout=60)
    assert result.status == 0, result.logs()
    assert result.summary["simulations"]["complete"] == 1
    [lost] = result.summary["set_aside"]
    assert (lost["simulation"], lost["cause"]) == (1, "silent")
    assert "longer than solvers.timeout_s allows" in lost["how"]
