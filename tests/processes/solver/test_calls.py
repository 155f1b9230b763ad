import subprocess
import sys
from pathlib import Path

import pytest
from launch_job import clean_environment

HERE = Path(__file__).parents[2] / "unit"


SCRIPT = """
import atexit, os, sys
sys.path.append({here!r})
from pathlib import Path
from fake_library import FakeLibrary, make_plan
from mpidata import solver
from mpidata.solver import group_rank
from mpidata.native import uncaught
from mpidata.solver.group_rank import GroupRank
group_rank.time.sleep = lambda seconds: print('stay', seconds)
library = FakeLibrary(make_plan(folder=Path(__file__).parent, fault_tolerance={ft!r}), end_at_step={end})
library.mpidata_report_error = lambda sentence: print("error", sentence.decode())
library.mpidata_finalize = lambda: print("finalize") or 0
solver._rank = GroupRank(library, None, library.plan, 3)
uncaught.end_on_exception(library.plan.folder, solver._report)
atexit.register(solver._finalize_at_exit, os.getpid())
for simulation in solver.simulations():
    simulation.step(1.0)
    simulation.step(2.0)
    {then}
print("after the loop")
"""


@pytest.mark.parametrize(
    ("then", "end", "status", "output"),
    [
        ("pass", None, 0, ["finalize", "after the loop"]),
        ("pass", 1, 0, ["finalize"]),
        ("break", None, 0, ["after the loop", "finalize"]),
        (
            "1 / 0",
            None,
            1,
            [
                "error ZeroDivisionError: division by zero (heat.py line 20). Solver rank 3 (group 0, its rank 1), "
                "simulation 8, step 2. The traceback is in this rank's log.",
                "stay 4.0",
            ],
        ),
        ("simulation.put(unknown=1)", None, 1, ["stay 4.0"]),
        (
            "simulation.put_block('temperature', [1], [])",
            None,
            1,
            [
                "stay 4.0",  # the library has reported it
            ],
        ),
    ],
)
def test_program_finalizes_or_reports_its_error(tmp_path, then, end, status, output):
    path = tmp_path / "heat.py"
    path.write_text(SCRIPT.format(here=str(HERE), then=then, end=end, ft="none"))
    result = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout.splitlines()) == (status, output)
    # The library's own errors are whole sentences, and are shown as such.
    assert ("Traceback" in result.stderr) == ("1 / 0" in then or "raise" in then)


def test_program_that_raises_loses_only_its_group_with_ulfm(tmp_path):
    path = tmp_path / "heat.py"
    path.write_text(SCRIPT.format(here=str(HERE), then="1 / 0", end=None, ft="ulfm"))
    result = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout) == (1, "") and result.stderr.startswith("Traceback")
    said = "mpidata: Solver rank 3 (group 0, its rank 1), simulation 8, step 2, raised ZeroDivisionError: division by"
    assert result.stderr.splitlines()[-1] == f"{said} zero (heat.py line 20)"


def test_failure_to_finalize_at_exit_ends_the_program_with_status_1(tmp_path):
    path = tmp_path / "heat.py"
    script = SCRIPT.format(here=str(HERE), then="library.mpidata_finalize = lambda: 10; break", end=None, ft="none")
    path.write_text(script)
    result = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout.splitlines()) == (1, ["after the loop", "stay 4.0"])
    assert result.stderr.strip() == "The sentence. Where. What to do."


@pytest.mark.parametrize(
    ("given", "value"), [("fine", "fine"), ("2nd-order", "2nd-order"), ("0.5", 0.5), ("1e-3", 0.001)]
)
def test_a_parameter_outside_a_job_may_be_a_text(tmp_path, given, value):
    environment = {**clean_environment(), "MPIDATA_PARAM_MESH": given}
    code = "import mpidata\nfor s in mpidata.solver.simulations(): print(repr(s.parameters['mesh']))"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout == f"{value!r}\n", done.stderr


def test_invalid_number_outside_a_job_is_refused(tmp_path):
    environment = {**clean_environment(), "MPIDATA_PARAM_ALPHA": "0,5"}
    code = "import mpidata\nfor s in mpidata.solver.simulations(): print(s.parameters['alpha'])"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and "MPIDATA_PARAM_ALPHA='0,5' is not a finite number" in done.stderr
