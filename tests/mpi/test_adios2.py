"""Programs that write with the ADIOS2 of PyPI, which has no MPI, stream by their XML file alone."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from adios2_job import FIELDS, SIMULATIONS, XML, build_for_wheel, check, told, write_job
from jobs import DRAIN, JobFolder, python
from test_misuse import assert_failed


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, require: Callable[[str], str]) -> Path:
    """Folder with the program, `writes`, and the folder of the engine."""
    folder = tmp_path_factory.mktemp("adios2")
    require("cmake")
    build_for_wheel(folder, require("g++"))
    return folder


@pytest.fixture
def streams(folder: JobFolder, built: Path) -> JobFolder:
    folder.variables["ADIOS2_PLUGIN_PATH"] = str(built / "engine")
    return folder


def program(folder: JobFolder, built: Path, how: str = "plain") -> list[str]:
    return [str(built / "writes"), str(folder.path / "adios2.xml"), how]


@pytest.mark.parametrize("time", ["t", None])
def test_every_element_of_every_variable_arrives(streams: JobFolder, built: Path, time: str | None) -> None:
    write_job(streams, program(streams, built), time=time)
    check(streams, streams.run())


def test_simulation_of_a_program_that_dies_is_retried(streams: JobFolder, built: Path) -> None:
    write_job(streams, program(streams, built, "dies"))
    result = streams.run()
    check(streams, result)
    assert [entry["simulation"] for entry in result.summary["retries"]] == [1]


def write_python_job(folder: JobFolder, step: int, how: str, **solvers: object) -> None:
    program = python("adios2/stream.py", folder.path / "adios2.xml", step, how)
    carried = {"carried": {"time": "t"}, "lifetime": "simulation", "program": program}
    trainers = {"program": python("adios2/values.py")}
    write_job(
        folder, program, trainers=trainers, fields={"energy": {"shape": []}}, lengths={}, solvers=carried | solvers
    )


def test_single_values_of_a_python_program_arrive(streams: JobFolder) -> None:
    """The interface puts values that are gone at the end of the step, and after the last step what is not a field."""
    write_python_job(streams, -1, "raises")
    result = streams.run()
    assert result.status == 0, result.logs()
    wanted = [[s, k, 100.0 + k, 200.0 + 10 * s + k] for s in range(SIMULATIONS) for k in range(4)]
    assert json.loads((streams.path / "values.json").read_text()) == wanted


FAILURES = [
    (0, "raises", "within step 0, before EndStep", "ValueError: diverged"),
    (2, "raises late", "within step 2, before EndStep", "ValueError: diverged"),
    (4, "raises", "exit status 1", "ValueError: diverged"),
    (1, "reopens", "within step 1, before EndStep", "opens the engine of mpidata a second time"),
    (2, "nan", "a time that is not finite", ""),
]


@pytest.mark.parametrize(("step", "how", "cause", "said"), FAILURES)
def test_errors_of_a_python_program_fail_the_try(
    streams: JobFolder, step: int, how: str, cause: str, said: str
) -> None:
    """An exception fails the try although it closes the output, as the end of the program does."""
    write_python_job(streams, step, how, retries=1)
    result = streams.run()
    assert result.status == 1 and result.summary["simulations"]["complete"] == 0, result.logs()
    assert len(result.summary["retries"]) == len(result.summary["set_aside"]) == 3
    assert cause in result.summary["set_aside"][0]["how"] and said in result.output, result.output


def test_missing_engine_in_the_xml_file_fails_the_job(streams: JobFolder, built: Path) -> None:
    carried = {"carried": {"time": "t"}, "lifetime": "simulation", "program": program(streams, built), "retries": 0}
    write_job(streams, program(streams, built), trainers=DRAIN, solvers=carried)
    (streams.path / "adios2.xml").write_text(XML.replace('"output"', '"outputs"'))
    result = streams.run()
    assert result.status == 1 and "does its XML file name the engine of mpidata" in result.output, result.output


def test_program_without_steps_sends_one_sample_per_simulation(streams: JobFolder, built: Path) -> None:
    write_job(streams, program(streams, built, "no steps"), trainers=DRAIN)
    result = streams.run()
    assert result.status == 0 and result.summary["samples"]["received"] == 4, result.logs()


def test_cancelled_simulations_end_their_programs(streams: JobFolder, built: Path) -> None:
    trainer = {"program": python("trainers/cancels.py", "drawn", 3)}
    fields = {name: field for name, field in FIELDS.items() if name not in ("part", "each", "mesh")}
    write_job(streams, program(streams, built, "endless"), trainers=trainer, fields=fields, lengths={})
    result = streams.run()
    assert result.status == 0 and result.summary["cancelled"] == [0, 1, 2, 3], result.logs()
    assert result.summary["retries"] == [] and "was ended" not in result.logs() and "threw" not in result.logs()


MISTAKES = {
    "no time": ("t", FIELDS, "The variable 't' was not put. Solver rank "),
    "texts": ("note", FIELDS, "The variable 'note' is not a single number. Solver rank "),
    "shape": ("t", FIELDS | {"fields_u": {"shape": [11, 6]}}, "'fields_u'"),
    "dtype": ("t", FIELDS | {"note": {"shape": []}}, "The variable 'note' is a text or a long double. Solver rank "),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_wrong_variables_fail_the_job(streams: JobFolder, built: Path, mistake: str) -> None:
    time, fields, sentence = MISTAKES[mistake]
    how = mistake if mistake == "no time" else "plain"
    write_job(streams, program(streams, built, how), time=time, fields=fields, trainers=DRAIN)
    assert_failed(streams.run(timeout=60), sentence)


@pytest.mark.parametrize(("how", "sentence"), [("reads", "only writes"), ("spans", "has no buffer")])
def test_unsupported_calls_throw(folder: JobFolder, built: Path, how: str, sentence: str) -> None:
    done = told(folder, [str(built / "writes"), "adios2.xml", how], built / "engine")
    assert done.returncode == 1 and f"threw: mpidata: This engine of ADIOS2 {sentence}" in done.stderr, done.stderr


def test_no_files_are_written_outside_a_job(folder: JobFolder, built: Path) -> None:
    done = told(folder, [str(built / "writes"), "adios2.xml"], built / "engine")
    assert done.returncode == 0 and "started outside a job" in done.stderr
    assert {path.name for path in folder.path.iterdir()} == {"adios2.xml"}


def set_order(folder: JobFolder, order: str) -> None:
    odd = XML.replace("</engine>", f'<parameter key="Order" value="{order}"/></engine>')
    (folder.path / "odd.xml").write_text(odd)


def test_column_major_order_is_accepted(streams: JobFolder, built: Path) -> None:
    set_order(streams, "column-major")
    fields = {"fields_u": {"shape": [5, 11]}}
    command = [str(built / "writes"), str(streams.path / "odd.xml")]
    write_job(streams, command, trainers=DRAIN, fields=fields, lengths={})
    result = streams.run()
    assert result.status == 0 and result.summary["samples"]["received"] == 3 + 4 + 5 + 3, result.logs()


def test_invalid_order_is_refused(folder: JobFolder, built: Path) -> None:
    set_order(folder, "fortran")
    done = told(folder, [str(built / "writes"), "odd.xml"], built / "engine")
    assert done.returncode == 1 and "with the value column-major (Fortran) or row-major" in done.stderr
