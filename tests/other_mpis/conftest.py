"""Fixtures: environments with other MPIs."""

import pytest
from mpis import KINDS, Mpi, make


@pytest.fixture(scope="session", params=list(KINDS))
def mpi(request: pytest.FixtureRequest) -> Mpi:
    """Every other MPI in turn."""
    return make(request.param)


@pytest.fixture(scope="session", params=["debian-mpich", "debian-openmpi"])
def debians(request: pytest.FixtureRequest) -> Mpi:
    """Those of Debian, which have Fortran."""
    return make(request.param)


@pytest.fixture(scope="session")
def mpich() -> Mpi:
    """MPICH 5, which can spawn."""
    return make("mpich")


@pytest.fixture(scope="session")
def debian_mpich() -> Mpi:
    """MPICH 4.0 of Debian, which cannot."""
    return make("debian-mpich")
