"""Fixtures: environments with other MPIs."""

import pytest
from mpis import KINDS, Mpi, make


@pytest.fixture(scope="session", params=list(KINDS))
def mpi(request: pytest.FixtureRequest) -> Mpi:
    """Return each other MPI in turn."""
    return make(request.param)


@pytest.fixture(scope="session", params=["debian-mpich", "debian-openmpi"])
def debians(request: pytest.FixtureRequest) -> Mpi:
    """Return each of Debian's MPIs, which have Fortran."""
    return make(request.param)


@pytest.fixture(scope="session")
def mpich() -> Mpi:
    """Return MPICH 5, which can spawn."""
    return make("mpich")


@pytest.fixture(scope="session")
def debian_mpich() -> Mpi:
    """Return Debian's MPICH 4.0, which cannot spawn."""
    return make("debian-mpich")
