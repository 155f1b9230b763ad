"""Fortran code compiled with other default kinds of reals and integers can call the unchanged module."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from jobs import config

from tests.fortran.test_fortran_put import HERE, MODULE, STRICT, pytestmark, read_exit_note, run

__all__ = ["pytestmark"]

FLAGS = [
    [],
    ["-fdefault-real-8"],
    ["-fdefault-integer-8"],
    ["-fdefault-real-8", "-fdefault-integer-8", "-fdefault-double-8"],
]
ASSUMED_SIZE = """
program alone
  use mpidata_carried
  implicit none
  integer :: simulation
  real, target, asynchronous :: u(4, 3)
  u = 0
  call mpidata_attach()
  if (mpidata_next(simulation)) call send(u)
contains
  subroutine send(values)
    real, target, asynchronous :: values(4, *)
    call {call}('u', values)
  end subroutine send
end program alone
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the module and the recorder with the compiler's default kinds, as in an installation."""
    folder = tmp_path_factory.mktemp("fortran")
    subprocess.run(["gcc", "-std=c11", "-c", HERE / "recorder.c", "-o", folder / "recorder.o"], check=True)
    subprocess.run(["gfortran", *STRICT, "-J", folder, "-c", MODULE, "-o", folder / "module.o"], check=True)
    return folder


@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
def test_module_works_with_flags_for_other_kinds(
    built: Path, flags: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = built / "kinds"
    objects = [built / "module.o", built / "recorder.o"]
    command = ["gfortran", *STRICT, *flags, f"-I{built}", HERE / "kinds.f90", *objects, "-o", program]
    subprocess.run(command, check=True)
    monkeypatch.setenv("MPIDATA_PARAM_LEVEL", "4")
    monkeypatch.chdir(built)
    done = run(program)
    assert done.returncode == 0, done.stderr
    note = program.with_suffix(".record").read_bytes()
    program.with_suffix(".record").write_bytes(note[: note.index(b"next 1")])
    puts, lines = read_exit_note(program.with_suffix(".record"))
    assert lines[-5:] == ["step 0.25", "step 0.5", "step 0.75", "step 1", "fail over"]
    assert puts["u"].array.dtype == ("float64" if "-fdefault-real-8" in flags else "float32")
    assert puts["u32"].start == puts["u64"].start == (2, 1)
    assert puts["marker"].array.dtype == "uint8"
    assert puts["marker"].array.tolist() == [1, 255, 3]
    assert puts["marker"].start == (3,)


@pytest.mark.parametrize("values", ["u + 1", "(u)", "u([1, 3], :)", "abs(u)"])
def test_iput_of_a_compiler_temporary_does_not_compile(built: Path, values: str) -> None:
    source = built / "lent.f90"
    text = (
        "subroutine lend(u)\n  use mpidata\n  real, target :: u(:, :)\n  call mpidata_iput('u', {})\nend subroutine\n"
    )
    for lent, fits in [("u", True), ("u(:, 2)", True), (values, False)]:
        source.write_text(text.format(lent))
        done = subprocess.run(["gfortran", f"-I{built}", "-c", source, "-o", built / "lent.o"], capture_output=True)
        assert (done.returncode == 0) == fits, done.stderr


@pytest.mark.parametrize("call", ["mpidata_put", "mpidata_iput"])
def test_assumed_size_array_is_refused(built: Path, call: str) -> None:
    (built / "size.f90").write_text(ASSUMED_SIZE.format(call=call))
    subprocess.run(["gfortran", built / "size.f90", *config("--fcarried"), "-o", built / "size"], check=True)
    done = subprocess.run([built / "size"], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "Field 'u': extent -1: an assumed-size array, u(*), whose last extent is not known, was put" in done.stderr
    assert "put an empty allocatable array, or nothing" in done.stderr
    assert "Pass a section with its extents: u(1:n)" in done.stderr
