"""Parameters that are texts or integers: valid job files, and the resulting values."""

from pathlib import Path
from typing import Any

import pytest

from mpidata.config import Job, load_job, resolved_yaml
from mpidata.errors import JobFileError
from mpidata.run.plan import Plan
from mpidata.sampling.drawing import draw_parameters
from mpidata.sampling.parameters_file import append_rows, assignments, read_parameters, write_parameters

TEXT = """\
trainers: {program: [python, -c, pass]}
solvers: {program: [python, -c, pass, SPARE], lifetime: simulation, carried: {}}
parameters: {count: 30, space: {mesh: MESH, alpha: [0, 1]}}
validation: {count: 4}
fields: {u: {shape: [4]}}
"""
SAMPLER = """
import numpy as np
class One:
    def __init__(self, space, seed): self.texts = space["mesh"]["choices"]
    def sample(self, count): return np.full((count, 2), self.texts.index("fine") if count else VALUE)
"""


def load(folder: Path, mesh: str, *overrides: str, argument: str = "x") -> Job:
    text = TEXT.replace("MESH", mesh).replace("SPARE", f'"{argument}"')
    (folder / "job.yaml").write_text(text, encoding="utf-8")
    return load_job(folder / "job.yaml", overrides)


@pytest.mark.parametrize("sampler", ["uniform", "latin_hypercube", "halton", "sobol"])
def test_texts_are_drawn_as_indices_into_their_list(tmp_path: Path, sampler: str) -> None:
    job = load(tmp_path, "{choices: [coarse, fine, 'very fine']}", f"parameters.sampler={sampler}")
    assert set(draw_parameters(job)[:, 0].tolist()) == {0.0, 1.0, 2.0}
    plan = Plan.of(job, tmp_path / "1")
    assert plan.texts == {"mesh": ("coarse", "fine", "very fine")} and plan.whole == ()
    again = Plan.parse(plan.text())
    assert again == plan
    (tmp_path / "again.yaml").write_text(resolved_yaml(job), encoding="utf-8")
    assert load_job(tmp_path / "again.yaml").parameters == job.parameters


def test_validation_of_a_grid_draws_texts_from_the_grid(tmp_path: Path) -> None:
    job = load(tmp_path, "{values: [a, b, c]}", "parameters.sampler=grid", "parameters.space.alpha={value: 1}")
    table = draw_parameters(job)
    assert table[:3, 0].tolist() == [0.0, 1.0, 2.0] and len(table) == 7
    assert set(table[:, 0].tolist()) <= {0.0, 1.0, 2.0}


@pytest.mark.parametrize(
    ("axis", "whole"),
    [
        ("{choices: [1, 2]}", True),
        ("{choices: [1.0, 2]}", False),
        ("{value: 3}", True),
        ("{value: 3.0}", False),
        ("{integers: [1, 2]}", True),
        ("[1, 2]", False),
        ("{choices: [a, b]}", False),
        ("{value: 123456789012345678901234567890}", False),
    ],
)
def test_plan_marks_parameters_that_are_whole_numbers(tmp_path: Path, axis: str, whole: bool) -> None:
    job = load(tmp_path, axis)
    assert Plan.of(job, tmp_path / "1").whole == (("mesh",) if whole else ())
    (tmp_path / "again.yaml").write_text(resolved_yaml(job), encoding="utf-8")
    again = load_job(tmp_path / "again.yaml")
    assert Plan.of(again, tmp_path / "1").whole == (("mesh",) if whole else ())


def test_assignments_format_integers_texts_and_numbers() -> None:
    told = assignments(("n", "m", "x"), (3.0, 1.0, 3.0), ("n",), {"m": ("a", "b=c")})
    assert told == ["n=3", "m=b=c", "x=3.0"]
    assert assignments(("n",), (2.5,), ("n",), {}) == ["n=2.5"]  # a validation value, between the values of a grid


def test_parameters_csv_has_the_texts(tmp_path: Path) -> None:
    import numpy as np

    path, names, texts = tmp_path / "p.csv", ("a", "m"), {"m": ("x", 'y, "z"')}
    table = np.array([[0.1, 1.0], [0.2, 0.0]])
    write_parameters(path, names, table[:1], first=1, learned=True, texts=texts)
    append_rows(path, 0, table[1:], [("bred", "")], names, texts)
    assert path.read_text() == 'simulation,a,m,rule,parent\n1,0.1,"y, ""z""",validation,\n0,0.2,x,bred,\n'
    read, drawn = read_parameters(path, names, 1, 1, texts)
    assert read.tolist() == [[0.2, 0.0], [0.1, 1.0]] and drawn == 1
    path.write_text(path.read_text().replace("x,bred", "w,bred"))
    with pytest.raises(Exception, match="not a table of numbers"):
        read_parameters(path, names, 1, 1, texts)


@pytest.mark.parametrize(
    ("axis", "said"),
    [
        ("{choices: [coarse, 1]}", "choices' has both the text 'coarse' and the number 1"),
        ("{choices: [a, a]}", "has the value a twice"),
        ("{choices: [true, b]}", 'choices[0]\' is true. It must be a number or a text. A text is quoted: "true".'),
        ("{choices: [null, b]}", 'choices[0]\' is null. It must be a number or a text. A text is quoted: "null".'),
        ("{choices: ['1', '2']}", "choices[0]' is '1', a text that reads as a number. Remove the quotes"),
        ("{choices: ['1,5', b]}", "choices[0]' is '1,5', neither a number nor a text with other letters"),
        ("{choices: ['nan', b]}", "choices[0]' is 'nan', a text that reads as a number"),
        ("{choices: ['', b]}", "choices[0]' is '', an empty text"),
        ("{choices: [' a', b]}", "cannot get control characters, or blanks at either end"),
        ('{choices: ["a\\nb", b]}', "cannot get control characters"),
        ('{choices: ["a\\0b", b]}', "cannot get control characters"),
        (f"{{choices: [{'é' * 128}, b]}}", "a text of 256 bytes. It must have fewer than 256"),
        ("{choices: [.nan, 2]}", "is nan. It must be a finite number"),
        ("{choices: [[1], 2]}", "is [1]. It must be a number or a text."),
        ("[coarse, fine]", "A range is two numbers, [low, high]; texts are written {choices: [coarse, fine]}."),
        ("coarse", "texts are written {value: coarse}."),
        ("{values: [a, b]}", "has no range. Write it as {choices: [...]} for uniform."),
    ],
)
def test_invalid_text_parameters_are_refused(tmp_path: Path, axis: str, said: str) -> None:
    with pytest.raises(JobFileError) as error:
        load(tmp_path, axis)
    assert said in str(error.value)


def test_samplers_that_learn_refuse_texts(tmp_path: Path) -> None:
    for sampler in ("adaptive", "breed", "power"):
        with pytest.raises(JobFileError, match=f"has texts, which {sampler} cannot vary"):
            load(tmp_path, "{choices: [a, b]}", f"parameters.sampler={sampler}")
        load(tmp_path, "{value: a}", f"parameters.sampler={sampler}")


def test_custom_sampler_returns_indices_of_texts(tmp_path: Path) -> None:
    overrides: tuple[Any, ...] = ("parameters.sampler=own:One",)
    (tmp_path / "own.py").write_text(SAMPLER.replace('self.texts.index("fine") if count else VALUE', "1"))
    assert set(draw_parameters(load(tmp_path, "{choices: [coarse, fine]}", *overrides))[:, 0].tolist()) == {1.0}
    (tmp_path / "other.py").write_text(SAMPLER.replace('self.texts.index("fine") if count else VALUE', "2"))
    with pytest.raises(JobFileError, match=r"returns 2.0 for 'mesh'. Return the index of one of its texts"):
        draw_parameters(load(tmp_path, "{choices: [coarse, fine]}", "parameters.sampler=other:One"))


@pytest.mark.parametrize(
    ("axis", "argument", "said"),
    [
        ("{choices: [1, 2]}", "{mesh:04d}", ""),
        ("[0, 1]", "{mesh:.6e}", ""),
        ("{choices: [a, b]}", "{mesh}", ""),
        ("{choices: [a, b]}", "{mesh:.6e}", "is '{mesh:.6e}', but mesh is not a number. Remove the format."),
        ("[0, 1]", "{mesh:d}", "but mesh is not a whole number: give it 'integers'"),
        ("[0, 1]", "{mesh:s}", "which cannot be filled. Write {name} or {name:.6e} or {name:4d}"),
        ("[0, 1]", "{mash:.6e}", "but there is no parameter 'mash'. Did you mean 'mesh'?"),
    ],
)
def test_formats_in_arguments_must_match_the_parameter(tmp_path: Path, axis: str, argument: str, said: str) -> None:
    if not said:
        load(tmp_path, axis, argument=argument)
        return
    with pytest.raises(JobFileError) as error:
        load(tmp_path, axis, argument=argument)
    assert said in str(error.value)


def test_integer_format_is_refused_if_validation_lies_between_grid_values(tmp_path: Path) -> None:
    overrides = ("parameters.sampler=grid", "parameters.space.alpha={value: 1}")
    with pytest.raises(JobFileError, match="but mesh is not a whole number"):
        load(tmp_path, "{values: [1, 4]}", *overrides, argument="{mesh:d}")
    load(tmp_path, "{values: [1, 4]}", *overrides, "validation.count=0", argument="{mesh:d}")
