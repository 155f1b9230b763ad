import pytest


@pytest.fixture(autouse=True)
def _in_job(monkeypatch):
    monkeypatch.setenv("MPIDATA_RUN", "/run")
