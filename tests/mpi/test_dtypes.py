"""Fields of all dtypes from solvers in C, Fortran and Python reach batches, validation, statistics and the record."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from jobs import BIN, PROGRAMS, JobFolder, Result, config, python
from programs.dtype_values import FIELDS, NATIVE, STEPS, arrives

from mpidata import RecordedDataset
from mpidata.native import constants

SIMULATIONS = 2
OF_FORTRAN = {name: field for name, field in FIELDS.items() if not name.startswith(("uint16", "uint32", "uint64"))}
OF_FORTRAN = {name: field for name, field in OF_FORTRAN.items() if name not in ("float16", "bfloat16")}
OF_FORTRAN |= {f"bool_{size}_bool": FIELDS["bool"] for size in (1, 2, 8)}


def run(folder: JobFolder, fields: dict[str, Any], **solvers: Any) -> Result:
    fields = {name: dict(field) for name, field in fields.items()}
    fields["int32"]["statistics"] = False
    folder.job(
        trainers={"program": python("trainers/checks/check_dtypes.py")},
        solvers=solvers,
        parameters={"count": SIMULATIONS, "space": {"alpha": [0.0, 1.0]}},
        validation={"count": 1},
        fields=fields,
        samples={"statistics": True},
        record={"path": "samples"},
    )
    result = folder.run()
    assert result.status == 0, result.logs()
    assert result.marked() == [f"checked {SIMULATIONS * STEPS * len(fields)}"], result.logs()
    return result


def test_all_dtypes_are_tested() -> None:
    assert set(NATIVE) == set(constants.DTYPES)


def test_dtypes_of_a_c_solver_arrive(folder: JobFolder, compiled: Callable[[str], Path]) -> None:
    run(folder, FIELDS, program=[str(compiled("dtypes"))])


def test_dtypes_of_a_carried_fortran_solver_arrive(folder: JobFolder, require: Callable[[str], str]) -> None:
    options = ["-Wall", "-Wextra", "-Werror", "-O2"]
    source = PROGRAMS / "solvers/fortran/dtypes.f90"
    command = [require("gfortran"), *options, source, "-o", "solver", *config("--fcarried")]
    subprocess.run(command, cwd=folder.path, check=True)
    run(folder, OF_FORTRAN, program=["./solver"], carried={})


def test_dtypes_of_a_python_solver_reach_record_and_statistics(folder: JobFolder) -> None:
    result = run(folder, FIELDS, program=python("solvers/python/puts_dtypes.py"))
    for validation, samples in ((False, SIMULATIONS * STEPS), (True, STEPS)):
        dataset = RecordedDataset(folder.path / "samples", validation=validation)
        assert len(dataset) == samples
        for i in range(len(dataset)):
            for name, field in FIELDS.items():
                found, step = dataset[i][name], int(dataset[i]["step"])
                assert found.dtype == getattr(torch, str(field["dtype"])) and found.shape == (6,)
                array = found.float().numpy() if field["dtype"] == "bfloat16" else found.numpy()
                np.testing.assert_array_equal(array, arrives(name, step), err_msg=name)
    with h5py.File(folder.path / "samples" / "trainer-0000.h5") as file:
        stored = file["fields"]["bfloat16"]
        assert stored.dtype == np.uint16 and dict(stored.attrs) == {"dtype": "bfloat16"}
    script = PROGRAMS / "trainers/checks/check_dtypes.py"
    tried = folder.run(command=[str(BIN / "mpidata"), "try", str(script), "--record", "samples", "--job", "job.yaml"])
    assert tried.status == 0 and f"=> checked {SIMULATIONS * STEPS * len(FIELDS)}" in tried.output, tried.output
    assert result.run is not None
    statistics = json.loads((result.run / "statistics.json").read_text())["fields"]
    assert set(statistics) == {n for n in FIELDS if not n.startswith(("bool", "complex"))} - {"int32"}
    for name, found in statistics.items():
        values = np.concatenate([arrives(name, step) for step in range(STEPS)] * SIMULATIONS).astype(np.float64)
        finite = values[np.abs(values) <= 1e150]
        assert found["count"] == [len(finite)] and found["not_finite"] == [len(values) - len(finite)], name
        assert found["min"] == [finite.min()] and found["max"] == [finite.max()]
        assert found["mean"] == pytest.approx([finite.mean()]) and found["std"] == pytest.approx([finite.std()])
