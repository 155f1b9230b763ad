"""What libraries and launchers call themselves."""

import pytest

from mpidata.mpi.mpi_name import MpiName, mpi_of_launcher, mpi_of_library

_HYDRA = "HYDRA build details:\n    Version:                                 5.0.2\n    Release Date: x\n"


@pytest.mark.parametrize(
    "text, name, version",
    [
        ("Open MPI v5.0.11, package: Open MPI user@host Distribution, ident: 5.0.11", "Open MPI", "5.0.11"),
        ("Open MPI v5.0.11", "Open MPI", "5.0.11"),
        ("MPICH Version:      5.0.2\nMPICH Release date:     Fri", "MPICH", "5.0.2"),
        ("MPICH Version:\t4.0.2\nMPICH Release date:\tThu", "MPICH", "4.0.2"),
        ("MPI VERSION    : CRAY MPICH version 8.1.29.26 (ANL base 3.4a2)\n", "Cray MPICH", "8.1.29.26"),
        ("Intel(R) MPI Library 2021.9 for Linux* OS\n\0", "Intel MPI", "2021.9"),
        ("MVAPICH2 Version      :\t2.3.7", "MVAPICH", "2.3.7"),
        ("IBM Spectrum, whatever", "IBM Spectrum", ""),
        ("", "an unknown MPI", ""),
    ],
)
def test_mpi_libraries_are_identified_by_their_version_text(text: str, name: str, version: str) -> None:
    assert mpi_of_library(text) == MpiName(name, version)
    assert str(mpi_of_library(text)) == f"{name} {version}".strip()


@pytest.mark.parametrize(
    "text, expected",
    [
        ("mpirun (Open MPI) 5.0.11\n\nReport bugs to", MpiName("Open MPI", "5.0.11")),
        ("mpirun.openmpi (OpenRTE) 4.1.4\n", MpiName("Open MPI", "4.1.4")),
        (_HYDRA, MpiName("MPICH", "5.0.2")),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.9 Build 20230307", MpiName("Intel MPI", "2021.9")),
        ("usage: mpirun", None),
    ],
)
def test_launchers_are_identified_by_their_version_text(text: str, expected: MpiName | None) -> None:
    assert mpi_of_launcher(text) == expected


def test_launchers_start_only_programs_of_a_compatible_mpi() -> None:
    five, four, mpich = MpiName("Open MPI", "5.0.11"), MpiName("Open MPI", "4.1.4"), MpiName("MPICH", "4.0.2")
    assert five.is_same(MpiName("Open MPI", "5.1.0")) and not five.is_same(four) and not five.is_same(mpich)
    assert five.starts(five) and not four.starts(five) and not mpich.starts(five) and not five.starts(mpich)
    assert mpich.starts(MpiName("MPICH", "5.0.2")) and mpich.starts(MpiName("MVAPICH", "2.3.7"))
