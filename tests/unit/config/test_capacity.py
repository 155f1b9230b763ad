"""buffer.capacity in bytes."""

from pathlib import Path
from typing import Any

import pytest

from mpidata.config import load_job, resolved_yaml
from mpidata.errors import JobFileError
from mpidata.run.plan.buffer import BufferSection, buffer_of
from mpidata.sizes import parse_size, size_text

JOB = """
trainers: {{program: [python, train.py]}}
solvers: {{program: [./heat2d]}}
parameters: {{count: 8, space: {{alpha: [0.01, 1e-1]}}}}
fields: {fields}
buffer: {buffer}
samples: {samples}
"""
BOXES = "{u: {shape: [100], dtype: float64}, v: {shape: [50]}}"  # 1000 bytes
MESH = "{u: {shape: [nodes]}, v: {shape: [50]}}"


def buffer(folder: Path, buffer: str, fields: str = BOXES, samples: str = "{}") -> BufferSection:
    (folder / "job.yaml").write_text(JOB.format(fields=fields, buffer=buffer, samples=samples))
    job = load_job(folder / "job.yaml")
    (folder / "again.yaml").write_text(resolved_yaml(job))
    assert buffer_of(load_job(folder / "again.yaml")) == buffer_of(job)
    return buffer_of(job)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2 GiB", 2**31), ("2GiB", 2**31), ("1.5 KiB", 1536), ("1 KB", 1000), ("0.25 MB", 250_000), ("3 MiB", 3 << 20),
        ("7 GB", 7 * 10**9), ("1 TB", 10**12), ("2 TiB", 2**41), ("2 gib", None), ("2", None), ("2 B", None),
        ("GiB", None), ("-1 GiB", None), ("1e3 GiB", None), ("2  GiB", None), ("", None), ("\u0664 KiB", None),
    ],
)  # fmt: skip
def test_sizes_with_units_are_parsed_and_others_rejected(text: str, size: int | None) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("size", [20, 1 << 10, 3 << 19, 1 << 31, 5 << 40])
def test_printed_sizes_can_be_parsed(size: int) -> None:
    text = size_text(size)
    assert text == "20 bytes" or parse_size(text) == size


@pytest.mark.parametrize(
    ("given", "samples", "wanted"),
    [
        ("{capacity: 100 KB}", "{}", {"capacity": 100, "watermark": 10}),
        ("{capacity: 100.9 KB}", "{}", {"capacity": 100, "watermark": 10}),
        ("{capacity: 1 MiB, watermark: 7}", "{}", {"capacity": 1048, "watermark": 7}),
        ("{capacity: 100 KB, policy: fifo}", "{}", {"capacity": 100, "watermark": 0}),
        ("{capacity: 100 KB, policy: firo}", "{window: 2}", {"capacity": 100, "watermark": 5}),
        ("{capacity: 1 KB, policy: fifo}", "{}", {"capacity": 1, "watermark": 0}),
    ],
)
def test_bytes_become_a_number_of_samples_if_samples_have_one_size(
    folder: Path, given: str, samples: str, wanted: dict[str, Any]
) -> None:
    planned = buffer(folder, given, samples=samples)
    assert {key: getattr(planned, key) for key in wanted} == wanted and not planned.capacity_in_bytes


def test_capacity_in_bytes_is_kept_for_samples_with_lengths(folder: Path) -> None:
    planned = buffer(folder, "{capacity: 2 TiB, policy: firo}", MESH)
    assert (planned.capacity, planned.capacity_in_bytes, planned.watermark) == (2**41, 1, 0)
    assert buffer(folder, "{capacity: 1 KB, policy: firo, watermark: 500}", MESH).watermark == 500
    planned = buffer(folder, "{capacity: 200, policy: firo}", MESH)
    assert (planned.capacity, planned.capacity_in_bytes, planned.watermark) == (200, 0, 20)


@pytest.mark.parametrize(
    ("given", "samples", "sentence"),
    [
        ("{capacity: 2 Gib}", "{}", "'buffer.capacity' is '2 Gib'. It must be a whole number of samples, or bytes"),
        ("{capacity: '2000'}", "{}", "'buffer.capacity' is '2000'. It must be a whole number of samples, or bytes"),
        ("{capacity: 0 GiB}", "{}", "'buffer.capacity' is '0 GiB'. It must be"),
        ("{capacity: 9000000 TiB}", "{}", "'buffer.capacity' is '9000000 TiB'. It must be"),
        ("{capacity: 0.5 KB}", "{}", "is 0.5 KB, and a step has 1000 bytes: it holds 0 of them. Samples with"),
        ("{capacity: 5 KB, watermark: 6}", "{}", "it holds 5 of them. Samples with 'buffer.watermark' 6 need 6"),
        ("{capacity: 5 KB, watermark: 5, policy: firo}", "{}", "it holds 5 of them. Samples with 'buffer.watermark' 5"),
        ("{capacity: 5 KB, watermark: 3}", "{window: 2}", "Windows of 2 steps with 'buffer.watermark' 3 need 6"),
    ],
)
def test_invalid_capacities_are_refused(folder: Path, given: str, samples: str, sentence: str) -> None:
    with pytest.raises(JobFileError) as caught:
        buffer(folder, given, samples=samples)
    assert sentence in str(caught.value) and "\n" not in str(caught.value)
