import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parents[2] / "unit"


SCRIPT = """
import atexit, os, sys
sys.path.append({here!r})
from pathlib import Path
from fake_library import FakeLibrary, make_plan
from mpidata import solver
from mpidata.solver import function as function_solver
from mpidata.solver import group_rank
from mpidata.solver.group_rank import GroupRank
group_rank.time.sleep = lambda seconds: print('stay', seconds)

class Request:
    def Test(self):
        return True

class Group:
    # One process: what rank 0 broadcasts is kept, what another rank is told is read from there.
    rank, told, size = {rank}, {told}, {size}
    def Get_rank(self):
        return self.rank
    def Get_size(self):
        return self.size
    def Ibcast(self, message, root):
        if self.rank == 0:
            print("tell", *message)
        else:
            message[:] = self.told.pop(0)
        return Request()

library = FakeLibrary(make_plan(folder=Path.cwd(), fault_tolerance={ft!r}), simulations=1)
library.mpidata_fail = lambda reason: print("give up:", reason.decode()) or 0
library.mpidata_fail_try = lambda reason: print("try failed:", reason.decode()) or 0
library.mpidata_report_error = lambda sentence: print("error", sentence.decode())
library.mpidata_finalize = lambda: print("finalize", library.steps, [put[0] for put in library.puts]) or 0
solver._rank = GroupRank(library, Group(), library.plan, 2 + {rank})
atexit.register(solver._finalize_at_exit, os.getpid())
function_solver.main(["heat:simulate"])
"""


def run(tmp_path, body, rank=0, told=(), size=2, ft="none"):
    (tmp_path / "heat.py").write_text(body)
    (tmp_path / "main_of_test.py").write_text(
        SCRIPT.format(here=str(HERE), rank=rank, told=list(told), size=size, ft=ft)
    )
    command = [sys.executable, "main_of_test.py"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    return result.returncode, result.stdout.splitlines(), result.stderr


def test_first_rank_runs_the_function_and_broadcasts_its_steps(tmp_path):
    body = "def simulate(alpha, beta):\n    for i in range(2):\n        yield beta + i, {'scalar': alpha}\n"
    status, output, _ = run(tmp_path, body)
    assert status == 0
    assert output == ["tell 1.0 4.0", "tell 1.0 5.0", "tell 0.0 0.0", "finalize [4.0, 5.0] ['scalar', 'scalar']"]


def test_other_ranks_take_part_in_the_steps(tmp_path):
    body = "def simulate(alpha, beta):\n    raise AssertionError\n"
    status, output, _ = run(tmp_path, body, rank=1, told=[(1, 4.0), (1, 5.0), (0, 0)])
    assert (status, output) == (0, ["finalize [4.0, 5.0] []"])


def test_rank_that_waits_for_the_first_rank_sends_signs_of_life(tmp_path):
    (tmp_path / "late.py").write_text(
        "class Late:\n    looks = 0\n    def Test(self):\n        self.looks += 1\n        return self.looks > 3\n"
    )
    body = "import __main__ as main, late\nmain.Group.Ibcast = lambda group, message, root: (\n"
    body += "    message.__setitem__(slice(None), group.told.pop(0)), late.Late())[1]\n"
    body += "main.library.mpidata_beat = lambda: print('beat')\ndef simulate(alpha, beta):\n    pass\n"
    status, output, errors = run(tmp_path, body, rank=1, told=[(1, 4.0), (0, 0)])
    assert (status, output.count("beat"), output[-1]) == (0, 6, "finalize [4.0] []"), errors


def test_function_with_group_runs_on_all_ranks(tmp_path):
    body = "def simulate(alpha, beta, group, simulation):\n    yield {'scalar': simulation} if group.rank else {}\n"
    assert run(tmp_path, body, rank=1)[:2] == (0, ["finalize [0.0] ['scalar']"])
    assert run(tmp_path, body, rank=0)[:2] == (0, ["finalize [0.0] []"])


@pytest.mark.parametrize(
    ("body", "sentence", "traceback"),
    [
        (
            "def simulate(alpha, beta):\n    yield {'scalar': 1}\n    yield {'scalar': [][1]}\n",
            "heat:simulate raised IndexError: list index out of range (heat.py line 3). Solver rank 2 (group 0, "
            "its rank 0), simulation 7, step 1. Correct the function; it can be run alone, without a job.",
            True,
        ),
        (
            "import sys\ndef simulate(alpha, beta):\n    yield sys.exit(3)\n",
            "heat:simulate raised SystemExit: 3 (heat.py line 3). Solver rank 2 (group 0, its rank 0), simulation 7, "
            "step 0. Correct the function; it can be run alone, without a job.",
            True,
        ),
        (
            "1 / 0\n",
            "heat:simulate raised ZeroDivisionError: division by zero (heat.py line 1). Solver rank 2 (group 0, "
            "its rank 0), outside a simulation. Correct the function; it can be run alone, without a job.",
            True,
        ),
        (
            "def simulate(alpha): pass\n",
            "solvers.function 'heat:simulate' does not take 'beta', but parameters.space has it. Its arguments are "
            "'alpha'. Give it an argument of that name, or remove the parameter from the job file.",
            False,
        ),
    ],
)
def test_function_that_fails_ends_the_job(tmp_path, body, sentence, traceback):
    status, output, errors = run(tmp_path, body)
    assert status == 1
    assert output[-2:] == [f"error {sentence}", "stay 4.0"]
    assert errors.splitlines()[-1] == sentence
    assert ("Traceback" in errors) == traceback


RAISES = "def simulate(alpha, beta):\n    yield {'scalar': 1}\n    raise ValueError('negative')\n"


RAISED = "raised ValueError: negative (heat.py line 3)"


WHERE = "mpidata: Solver rank 2 (group 0, its rank 0), simulation 7, step 1, "


def test_function_that_raises_in_a_group_of_one_rank_fails_one_try(tmp_path):
    status, output, errors = run(tmp_path, RAISES, size=1)
    assert (status, output) == (0, [f"try failed: {RAISED}", "finalize [0.0] ['scalar']"])
    assert errors.startswith("Traceback") and errors.splitlines()[-1] == WHERE + RAISED


def test_function_that_raises_in_a_group_of_several_ranks_loses_the_group(tmp_path):
    status, output, errors = run(tmp_path, RAISES, ft="ulfm")
    assert (status, output) == (1, ["tell 1.0 0.0"])
    assert errors.startswith("Traceback") and errors.splitlines()[-1] == WHERE + RAISED


def test_module_that_raises_on_import_ends_the_job(tmp_path):
    status, output, _ = run(tmp_path, "1 / 0\n", size=1, ft="ulfm")
    assert status == 1 and output[0].startswith("error heat:simulate raised ZeroDivisionError")


def test_simulation_is_abandoned_on_all_ranks(tmp_path):
    body = "import mpidata\ndef simulate(alpha, beta):\n    yield {}\n    raise mpidata.GiveUp(REASON)\n"
    for reason, told in (("'diverged'", "diverged"), ("", "no reason given")):
        status, output, errors = run(tmp_path, body.replace("REASON", reason))
        assert (status, errors) == (0, "")
        assert output == ["tell 1.0 0.0", f"give up: {told}", "tell 2.0 0.0", "finalize [0.0] []"]
    status, output, _ = run(tmp_path, body, rank=1, told=[(1, 4.0), (2, 0)])
    assert (status, output) == (0, ["give up: ", "finalize [4.0] []"])


def test_misuse_is_reported_only_by_the_library(tmp_path):
    status, output, errors = run(tmp_path, "def simulate(alpha, beta):\n    yield {'unknown': 1}\n")
    assert (status, output, errors.strip()) == (1, ["stay 4.0"], "The sentence. Where. What to do.")
