"""mpidata.ParameterServer outside a job, and what it refuses."""

from typing import Any

import pytest
import torch

from mpidata import ParameterServer, StreamError
from mpidata.trainer.served.local_server import Alone


@pytest.fixture(autouse=True)
def _outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MPIDATA_RUN", raising=False)
    monkeypatch.setattr(Alone, "made", False)


def test_parameter_server_outside_a_job_uses_a_local_optimizer() -> None:
    model, reference = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    reference.load_state_dict(model.state_dict())
    server = ParameterServer(model, torch.optim.Adam, staleness=3, lr=0.1)
    optimizer = torch.optim.Adam(reference.parameters(), lr=0.1)
    for i in range(5):
        server.pull()
        assert (server.version, server.ahead) == (i, 0)
        for one in (model, reference):
            one.zero_grad()
            one(torch.full((1, 3), float(i))).square().sum().backward()
        server.push()
        optimizer.step()
    server.pull()
    torch.testing.assert_close(model.state_dict(), reference.state_dict())


def test_unsupported_optimizers_and_models_are_refused() -> None:
    model = torch.nn.Linear(2, 2)
    refused: list[tuple[Any, dict[str, Any], str]] = [
        (torch.optim.LBFGS, {}, "the optimizer is LBFGS"),
        (torch.optim.SGD(model.parameters(), lr=0.1), {}, "the optimizer is a SGD. Give a class"),
        (torch.optim.SGD, {"staleness": -1}, "staleness=-1 is not an integer"),
        (torch.optim.SGD, {"staleness": True}, "staleness=True is not an integer"),
        (torch.optim.SGD, {"lr": -1.0}, "SGD does not accept these settings: Invalid learning rate: -1.0"),
        (torch.optim.SGD, {"rate": 1.0}, "SGD does not accept these settings"),
    ]
    for optimizer, settings, said in refused:
        with pytest.raises(StreamError, match=said):
            ParameterServer(model, optimizer, **settings)
    with pytest.raises(StreamError, match="model is of type list. Give a torch.nn.Module"):
        ParameterServer(list(model.parameters()), torch.optim.SGD)  # type: ignore[arg-type]
    with pytest.raises(StreamError, match="torch.complex64"):
        ParameterServer(torch.nn.Linear(2, 2, dtype=torch.complex64), torch.optim.SGD)
    with pytest.raises(StreamError, match="on meta. Use floating-point parameters in CPU memory"):
        ParameterServer(torch.nn.Linear(2, 2, device="meta"), torch.optim.SGD)
    with pytest.raises(StreamError, match="no parameter of the model requires a gradient"):
        ParameterServer(model.requires_grad_(False), torch.optim.SGD)


def test_sparse_gradients_are_refused() -> None:
    model = torch.nn.Embedding(4, 2, sparse=True)
    server = ParameterServer(model, torch.optim.SGD)
    model(torch.tensor([1])).sum().backward()
    with pytest.raises(StreamError, match="a gradient is sparse"):
        server.push()


def test_script_outside_a_job_may_create_only_one_parameter_server() -> None:
    with pytest.raises(StreamError, match="the optimizer is LBFGS"):  # which is not supported
        ParameterServer(torch.nn.Linear(2, 2), torch.optim.LBFGS)
    ParameterServer(torch.nn.Linear(2, 2), torch.optim.SGD)
    with pytest.raises(StreamError, match="this script already has one, or a LocalSGD. Create only one, before"):
        ParameterServer(torch.nn.Linear(2, 2), torch.optim.SGD)
