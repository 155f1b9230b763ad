import sys

import numpy as np
import pytest
import torch
from fake_library import FakeLibrary

from mpidata import solver
from mpidata.errors import LibraryError, MpidataError
from mpidata.solver import function as function_solver
from mpidata.solver.group_rank import GroupRank


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
def test_matching_signatures_are_accepted(function, wanted):
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
def test_mismatched_signatures_are_refused(function, message):
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
def test_fields_with_or_without_a_time_may_be_yielded(item, result):
    assert function_solver.unpack("h:s", item, 4) == result


@pytest.mark.parametrize("item", [None, 3.0, np.ones(3), (0.5, 1.0), ("a", {"u": 1}), (0.5, {"u": 1}, 2)])
def test_invalid_yielded_values_are_refused(item):
    with pytest.raises(MpidataError, match=r"^h:s yielded .* Yield \{field: array\} or \(time, \{field: array\}\)"):
        function_solver.unpack("h:s", item, 4)


def test_put_steps_puts_each_yielded_step(monkeypatch):
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
def test_blocks_are_distinguished_from_complete_fields(monkeypatch, value, starts):
    library = FakeLibrary()
    monkeypatch.setattr(solver, "_rank", GroupRank(library, None, library.plan))
    assert list(function_solver.put_steps("h:s", [{"temperature": value}], next(solver.simulations()))) == [0.0]
    assert [start for _, _, start in library.puts] == starts


@pytest.mark.parametrize("value", [(ROWS, 3), (ROWS, (0,)), [(ROWS, (0,))], [(ROWS, (0, 0)), (ROWS, (0, 0, 0))]])
def test_block_start_of_wrong_length_is_refused(monkeypatch, value):
    library = FakeLibrary()
    monkeypatch.setattr(solver, "_rank", GroupRank(library, None, library.plan))
    with pytest.raises(LibraryError, match="the block has 2 dimensions but start is"):
        list(function_solver.put_steps("h:s", [{"temperature": value}], next(solver.simulations())))


@pytest.mark.parametrize("start", [(2.0, 0), ("2", 0), None, 3.0])
def test_list_of_blocks_with_an_invalid_start_is_refused(monkeypatch, start):
    library = FakeLibrary()
    monkeypatch.setattr(solver, "_rank", GroupRank(library, None, library.plan))
    value = [(ROWS[:1].tolist(), (0, 0)), (ROWS, start)]
    with pytest.raises((MpidataError, LibraryError), match="start"):
        list(function_solver.put_steps("h:s", [{"temperature": value}], next(solver.simulations())))
    assert library.puts == []


@pytest.mark.parametrize("start", [(0, 1 << 63), (0, (1 << 64) + 1), (-1, 0), (True, 0)])
def test_impossible_block_start_is_refused(monkeypatch, start):
    library = FakeLibrary()
    monkeypatch.setattr(solver, "_rank", GroupRank(library, None, library.plan))
    with pytest.raises(LibraryError, match="but start is"):
        next(solver.simulations()).put_block("temperature", ROWS, start)
    assert library.puts == []


def test_field_names_that_are_not_texts_are_refused(monkeypatch):
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
        ("heat_of_test", "Write module:function"),
        ("other_of_test:f", "there is no module 'other_of_test', in .* or installed"),
        ("heat_of_test:f", "heat_of_test.py has no function 'f'"),
        ("heat_of_test:import_error", "has no function 'import_error'"),
    ]:
        with pytest.raises(MpidataError, match=message):
            function_solver.find_function(name)
    with pytest.raises(ModuleNotFoundError, match="none_of_test"):
        function_solver.find_function("bad_of_test:f")
