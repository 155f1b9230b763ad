import pytest
from fake_library import FakeLibrary, make_trainer

from mpidata.trainer import join as job


@pytest.fixture(params=["copied", "without a copy"])
def library(request, monkeypatch):
    monkeypatch.setattr(job, "_trainer", None)
    # How long torch may wait for a worker that fails at once.
    monkeypatch.setattr("torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL", 0.1)
    library = FakeLibrary()
    if request.param == "without a copy":
        library.pages = []
    trainer = make_trainer(library)
    yield library
    trainer.closed = True  # cancels what a test has left planned
