"""Random job files and tables of parameters: each is accepted, or refused with complete messages."""

import contextlib
import functools
import io
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpidata.config import Job, load_job
from mpidata.config.parameter_table import TableError, read_table
from mpidata.errors import JobFileError

JOB: dict[str, Any] = {
    "trainers": {"program": ["python", "train.py"]},
    "solvers": {"program": ["./heat2d"]},
    "parameters": {"count": 8, "space": {"alpha": [0.01, 0.1]}},
    "fields": {"u": {"shape": [4]}},
}
MANY = settings(
    max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

LONG = "x" * 5000
words = st.sampled_from(
    [*Job.model_fields, "program", "space", "shape", "alpha", "u", "sampler", "file", "grid", "self"]
)
paths = st.sampled_from([LONG, f"./{LONG}", "/", ".", "..", "/etc/passwd", "train.py/x", "~", "\0", "a\0b", "python"])
numbers = st.integers() | st.floats() | st.sampled_from([0, -1, 1, 10**9, 2**31 - 1, 2**63, 1e308])
scalars = st.one_of(st.none(), st.booleans(), numbers, st.text(max_size=8), words, paths, st.dates())
values = st.one_of(
    paths,
    numbers,
    st.lists(paths | words, min_size=1, max_size=3),
    st.dictionaries(
        words | paths,
        st.lists(numbers, max_size=3) | st.lists(numbers, max_size=3).map(lambda axis: {"values": axis, "shape": axis}),
        max_size=3,
    ),
    st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words | scalars, inner, max_size=4),
        max_leaves=8,
    ),
)
KEYS = [
    (section, key)
    for section, info in Job.model_fields.items()
    for key in getattr(info.annotation, "model_fields", {"": None})
]


def check(folder: Path, data: bytes) -> list[str]:
    """Return the messages about a job file; empty if it is accepted."""
    (folder / "job.yaml").write_bytes(data)
    try:
        load_job(folder / "job.yaml")
    except JobFileError as error:
        assert error.problems
        for sentence in error.problems:
            assert sentence.startswith("job.yaml: ") and sentence.rstrip()[-1] in ".?)", sentence
        return list(error.problems)
    return []


def test_base_job_of_the_fuzz_tests_is_accepted(folder: Path) -> None:
    assert check(folder, yaml.safe_dump(JOB).encode()) == []


@MANY
@given(st.sampled_from(KEYS), values, st.sampled_from(KEYS), values)
def test_random_values_in_a_job_file_are_accepted_or_refused(
    folder: Path, one: tuple[str, str], value: Any, other: tuple[str, str], second: Any
) -> None:
    """Each wrong key is reported, whatever else is wrong."""
    job = {key: dict(section) for key, section in JOB.items()}
    for (section, key), new in ((one, value), (other, second)):
        if key and isinstance(job.get(section, {}), dict):
            job.setdefault(section, {})[key] = new
        else:
            job[section] = new
    check(folder, yaml.dump(job, allow_unicode=True).encode("utf-8", "surrogatepass"))


def test_all_mistakes_are_reported_together(folder: Path) -> None:
    wrong = {"trainers": {"ranks": -1}, "fields": {"u": {"shape": "x"}}, "seed": "y", "buffer": {"policy": 3}}
    found = "\n".join(check(folder, yaml.safe_dump({**JOB, **wrong}).encode()))
    for key in ("trainers.ranks", "trainers.program", "fields.u.shape", "seed", "buffer.policy"):
        assert f"'{key}'" in found


@MANY
@given(st.one_of(st.binary(max_size=200), st.text("{}[]:,&*!|>'\"%@`-? \n\tab1.~#\0", max_size=60).map(str.encode)))
def test_random_bytes_as_a_job_file_are_accepted_or_refused(folder: Path, data: bytes) -> None:
    check(folder, data)


def npy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.ones((3, 2)))
    return file.getvalue()


@functools.cache
def whole_hdf5() -> bytes:
    file = io.BytesIO()
    with h5py.File(file, "w") as table:
        table["parameters"] = np.arange(12.0).reshape(6, 2)
        table["parameters"].attrs["names"] = ["alpha", "beta"]
        table["other"] = np.arange(6)
    return file.getvalue()


def read(folder: Path, data: bytes) -> None:
    (folder / "table").write_bytes(data)
    try:
        table = read_table(folder / "table")
    except TableError as error:
        assert str(error).endswith(".")
        return
    assert table.columns and table.rows >= 0
    job = {**JOB, "parameters": {"sampler": "file", "path": "table"}}
    check(folder, yaml.safe_dump(job).encode())


@MANY
@given(
    st.one_of(
        st.binary(max_size=200),
        st.text("ab,;\"'\n\r\t 0123.e-naif_\0é", max_size=80).map(lambda text: text.encode()),
        st.integers(0, 200).map(lambda end: npy()[:end]),
    )
)
def test_random_bytes_as_a_table_are_accepted_or_refused(folder: Path, data: bytes) -> None:
    read(folder, data)


@MANY
@given(st.data())
def test_damaged_hdf5_tables_are_accepted_or_refused(folder: Path, data: st.DataObject) -> None:
    whole = bytearray(whole_hdf5())
    for at in data.draw(st.lists(st.integers(0, len(whole) - 1), min_size=1, max_size=12)):
        whole[at] = data.draw(st.integers(0, 255))
    read(folder, bytes(whole[: data.draw(st.just(len(whole)) | st.integers(8, len(whole)))]))


names = st.lists(st.binary(max_size=3).filter(lambda name: b"\0" not in name), max_size=3)
extents = st.lists(st.sampled_from([0, 1, 2, 9, 10**5, 10**9, 10**12]), max_size=3)


@MANY
@given(
    extents,
    st.sampled_from(["f8", "i1", "u8", "S3", "c8", "bool", "f2", "O"]),
    st.one_of(st.none(), names.map(lambda names: np.array(names, "S3")), numbers.map(float), st.text(max_size=3)),
    st.sampled_from(["parameters", "alpha", "simulation", "\N{GREEK SMALL LETTER ALPHA}", "a b"]),
)
def test_random_hdf5_datasets_are_accepted_or_refused(
    folder: Path, shape: list[int], dtype: str, given_names: Any, name: str
) -> None:
    """This includes a dataset declared larger than any memory, which takes no space in the file."""
    file = io.BytesIO()
    most = int(100_000 ** (1 / max(len(shape), 1)))
    chunks = tuple(min(extent, most) for extent in shape) if shape and all(shape) else None
    with h5py.File(file, "w") as table:
        kind = h5py.string_dtype() if dtype == "O" else dtype
        data = table.create_dataset(name, tuple(shape), kind, chunks=chunks)
        if given_names is not None:
            with contextlib.suppress(ValueError):  # a text with a NUL
                data.attrs["names"] = given_names
    read(folder, file.getvalue())
