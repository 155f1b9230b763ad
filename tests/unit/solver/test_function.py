import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from fake_library import FakeLibrary

from mpidata import solver
from mpidata.errors import LibraryError, MpidataError
from mpidata.solver import function as function_solver
from mpidata.solver.group_rank import GroupRank

HERE = Path(__file__).parents[1]


def takes_all(alpha, beta):
    return [alpha, beta]


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (takes_all, ["alpha", "beta"]),
        (lambda beta, alpha, extra=1: None, ["alpha", "beta"]),
        (lambda **parameters: None, ["alpha", "beta"]),
        (lambda alpha, *, beta, group: None, ["alpha", "beta", "group"]),
        (lambda simulation, alpha, beta, group: None, ["alpha", "beta", "group", "simulation"]),
    ],
)
def test_signatures_that_fit(function, wanted):
    assert function_solver.names_wanted("heat:simulate", function, ["alpha", "beta"]) == wanted


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda alpha: None, "'heat:simulate' does not take 'beta', but .* Its arguments are 'alpha'"),
        (lambda: None, "does not take 'alpha', 'beta', .* Its arguments are none"),
        (lambda alpha, beta, gamma: None, "needs 'gamma', .* parameters of the job are 'alpha', 'beta'"),
        (lambda alpha, beta, /: None, "does not take 'alpha', 'beta'"),
    ],
)
def test_signatures_that_do_not_fit(function, message):
    with pytest.raises(MpidataError, match=message):
        function_solver.names_wanted("heat:simulate", function, ["alpha", "beta"])


def test_a_parameter_may_be_called_simulation():
    def function(simulation):
        return None

    assert function_solver.names_wanted("heat:simulate", function, ["simulation"]) == ["simulation"]


def test_outside_a_job_the_signature_names_the_parameters():
    assert function_solver.names_wanted("h:s", lambda a, group, b=1: None, None) == ["a", "b", "group"]


@pytest.mark.parametrize(
    ("item", "result"),
    [({"u": 1}, (4.0, {"u": 1})), ((0.5, {"u": 1}), (0.5, {"u": 1})), ((np.float32(2), {}), (2.0, {}))],
)
def test_what_a_function_may_yield(item, result):
    assert function_solver.unpack("h:s", item, 4) == result


@pytest.mark.parametrize("item", [None, 3.0, np.ones(3), (0.5, 1.0), ("a", {"u": 1}), (0.5, {"u": 1}, 2)])
def test_what_a_function_may_not_yield(item):
    with pytest.raises(MpidataError, match=r"^h:s yielded .* Yield \{field: array\} or \(time, \{field: array\}\)"):
        function_solver.unpack("h:s", item, 4)


def test_put_steps(monkeypatch):
    library = FakeLibrary()
    monkeypatch.setattr(solver, "_rank", GroupRank(library, None, library.plan))
    simulation = next(solver.simulations())
    items = [{"temperature": np.ones((2, 3))}, (0.5, {"temperature": (np.ones((1, 3)), (1, 0)), "scalar": 3}), {}]
    assert list(function_solver.put_steps("h:s", items, simulation)) == [0.0, 0.5, 2.0]
    assert [(field, start) for field, _, start in library.puts] == [
        ("temperature", None),
        ("temperature", (1, 0)),
        ("scalar", None),
    ]
    with pytest.raises(MpidataError, match="h:s returned None, not a generator"):
        list(function_solver.put_steps("h:s", None, simulation))


ROWS = np.arange(6.0).reshape(2, 3)
ROW = np.arange(3.0)


@pytest.mark.parametrize(
    ("value", "starts"),
    [
        ([(ROWS[:1], (0, 0)), (ROWS[1:], (1, 0))], [(0, 0), (1, 0)]),
        (((ROWS[:1], [0, 0]), (ROWS[1:], np.array([1, 0]))), [(0, 0), (1, 0)]),
        ([(torch.ones(1, 2), (0, 1))], [(0, 1)]),
        (([[1.0, 2.0]], (0, 1)), [(0, 1)]),
        (
            [([[1.0, 2.0]], (0, 1)), (np.ma.ones((1, 1)), (0, 0)), ([], (0,)), (np.array([]), ())],
            [(0, 1), (0, 0), *[(0, 0)] * 2],
        ),
        ([], []),
        (([], (0,)), [(0, 0)]),
        # whole fields
        (ROWS, [None]),
        (ROWS.tolist(), [None]),
        (tuple(map(tuple, ROWS.astype(int).tolist())), [None]),
        ([ROW, ROW], [None]),
        ([(1.0, 2.0), (3.0, 4.0)], [None]),
        ([((1, 2), (3, 4)), ((5, 6), (7, 8))], [None]),
        ((torch.ones(3), torch.ones(3)), [None]),
        ((np.float32(1), np.float32(2)), [None]),
        ([(ROW, ROW), (ROW, ROW)], [None]),
        (3, [None]),
    ],
)
def test_blocks_and_whole_fields(monkeypatch, value, starts):
    library = FakeLibrary()
    monkeypatch.setattr(solver, "_rank", GroupRank(library, None, library.plan))
    assert list(function_solver.put_steps("h:s", [{"temperature": value}], next(solver.simulations()))) == [0.0]
    assert [start for _, _, start in library.puts] == starts


@pytest.mark.parametrize("value", [(ROWS, 3), (ROWS, (0,)), [(ROWS, (0,))], [(ROWS, (0, 0)), (ROWS, (0, 0, 0))]])
def test_a_start_that_does_not_fit(monkeypatch, value):
    library = FakeLibrary()
    monkeypatch.setattr(solver, "_rank", GroupRank(library, None, library.plan))
    with pytest.raises(LibraryError, match="the block has 2 dimensions but start is"):
        list(function_solver.put_steps("h:s", [{"temperature": value}], next(solver.simulations())))


@pytest.mark.parametrize("start", [(2.0, 0), ("2", 0), None, 3.0])
def test_a_list_of_blocks_with_a_wrong_start_is_named_as_such(monkeypatch, start):
    library = FakeLibrary()
    monkeypatch.setattr(solver, "_rank", GroupRank(library, None, library.plan))
    value = [(ROWS[:1].tolist(), (0, 0)), (ROWS, start)]
    with pytest.raises((MpidataError, LibraryError), match="start"):
        list(function_solver.put_steps("h:s", [{"temperature": value}], next(solver.simulations())))
    assert library.puts == []


@pytest.mark.parametrize("start", [(0, 1 << 63), (0, (1 << 64) + 1), (-1, 0), (True, 0)])
def test_a_start_beyond_any_field_is_refused(monkeypatch, start):
    library = FakeLibrary()
    monkeypatch.setattr(solver, "_rank", GroupRank(library, None, library.plan))
    with pytest.raises(LibraryError, match="but start is"):
        next(solver.simulations()).put_block("temperature", ROWS, start)
    assert library.puts == []


def test_names_of_fields_are_texts(monkeypatch):
    library = FakeLibrary()
    monkeypatch.setattr(solver, "_rank", GroupRank(library, None, library.plan))
    with pytest.raises(MpidataError, match="names of fields are texts"):
        list(function_solver.put_steps("h:s", [{1: ROWS}], next(solver.simulations())))


def test_find_function_in_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    (tmp_path / "heat_of_test.py").write_text("def simulate(): pass\nimport_error = 1\n")
    (tmp_path / "bad_of_test.py").write_text("import none_of_test\n")
    assert function_solver.find_function("heat_of_test:simulate").__name__ == "simulate"
    for name, message in [
        ("heat_of_test", "Write it as module:function"),
        ("other_of_test:f", "there is no module 'other_of_test', in .* or installed"),
        ("heat_of_test:f", "heat_of_test.py has no function 'f'"),
        ("heat_of_test:import_error", "has no function 'import_error'"),
    ]:
        with pytest.raises(MpidataError, match=message):
            function_solver.find_function(name)
    with pytest.raises(ModuleNotFoundError, match="none_of_test"):
        function_solver.find_function("bad_of_test:f")


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


def test_first_rank_runs_the_function_and_tells_the_others(tmp_path):
    body = "def simulate(alpha, beta):\n    for i in range(2):\n        yield beta + i, {'scalar': alpha}\n"
    status, output, _ = run(tmp_path, body)
    assert status == 0
    assert output == ["tell 1.0 4.0", "tell 1.0 5.0", "tell 0.0 0.0", "finalize [4.0, 5.0] ['scalar', 'scalar']"]


def test_other_ranks_take_part_in_the_steps(tmp_path):
    body = "def simulate(alpha, beta):\n    raise AssertionError\n"
    status, output, _ = run(tmp_path, body, rank=1, told=[(1, 4.0), (1, 5.0), (0, 0)])
    assert (status, output) == (0, ["finalize [4.0, 5.0] []"])


def test_a_rank_that_only_follows_shows_that_it_lives(tmp_path):
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
            "'alpha'. Give it an argument of that name, or take the parameter out of the job file.",
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


def test_function_of_one_rank_that_raises_has_failed_one_try(tmp_path):
    status, output, errors = run(tmp_path, RAISES, size=1)
    assert (status, output) == (0, [f"try failed: {RAISED}", "finalize [0.0] ['scalar']"])
    assert errors.startswith("Traceback") and errors.splitlines()[-1] == WHERE + RAISED


def test_function_of_several_ranks_that_raises_costs_the_group(tmp_path):
    status, output, errors = run(tmp_path, RAISES, ft="ulfm")
    assert (status, output) == (1, ["tell 1.0 0.0"])
    assert errors.startswith("Traceback") and errors.splitlines()[-1] == WHERE + RAISED


def test_a_module_that_raises_is_no_failed_try(tmp_path):
    status, output, _ = run(tmp_path, "1 / 0\n", size=1, ft="ulfm")
    assert status == 1 and output[0].startswith("error heat:simulate raised ZeroDivisionError")


def test_a_simulation_is_given_up_on_all_ranks(tmp_path):
    body = "import mpidata\ndef simulate(alpha, beta):\n    yield {}\n    raise mpidata.GiveUp(REASON)\n"
    for reason, told in (("'diverged'", "diverged"), ("", "no reason given")):
        status, output, errors = run(tmp_path, body.replace("REASON", reason))
        assert (status, errors) == (0, "")
        assert output == ["tell 1.0 0.0", f"give up: {told}", "tell 2.0 0.0", "finalize [0.0] []"]
    status, output, _ = run(tmp_path, body, rank=1, told=[(1, 4.0), (2, 0)])
    assert (status, output) == (0, ["give up: ", "finalize [4.0] []"])


def test_misuse_is_reported_by_the_library_alone(tmp_path):
    status, output, errors = run(tmp_path, "def simulate(alpha, beta):\n    yield {'unknown': 1}\n")
    assert (status, output, errors.strip()) == (1, ["stay 4.0"], "The sentence. Where. What to do.")
