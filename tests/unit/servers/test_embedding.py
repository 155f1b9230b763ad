"""mpidata.ServedEmbedding: rows on any number of servers, stepped like those of torch's embedding."""

from typing import Any

import pytest
import torch

from mpidata import ParameterServer, ServedEmbedding, StreamError
from mpidata.servers.part import Making, Part, cut, join
from mpidata.servers.table import SPARSE, RowGradients, Rows, read_gradients, write_gradients
from mpidata.trainer.served.local_server import Alone


@pytest.fixture(autouse=True)
def _outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MPIDATA_RUN", raising=False)
    monkeypatch.setattr(Alone, "made", False)


class Model(torch.nn.Module):
    """Uses rows twice, and drops some."""

    def __init__(self, embedding: torch.nn.Module) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.head = embedding, torch.nn.Linear(3, 1)

    def forward(self, indices: torch.Tensor) -> torch.Tensor:
        values: torch.Tensor = self.head(self.embedding(indices)) + self.head(self.embedding(indices + 1))
        return values.square().mean()


@pytest.mark.parametrize("optimizer", SPARSE, ids=lambda one: str(one.__name__))
def test_rows_are_updated_like_those_of_a_torch_embedding(optimizer: Any) -> None:
    served = Model(ServedEmbedding(20, 3, seed=5))
    server = ParameterServer(served, optimizer, lr=0.1)
    reference = Model(torch.nn.Embedding(20, 3, sparse=True, _weight=Rows(20, 3, 5).draw(0, 20)))
    steps = [
        SPARSE[optimizer][0](reference.embedding.parameters(), lr=0.1),
        optimizer(reference.head.parameters(), 0.1),
    ]
    for _ in range(8):
        indices = torch.randint(0, 19, (2, 4))
        server.pull()
        for model in (served, reference):
            model.zero_grad()
            model(indices).backward()
        server.push()
        for step in steps:
            step.step()
    server.pull()
    everything = torch.arange(20)
    torch.testing.assert_close(served.embedding(everything), reference.embedding(everything))
    torch.testing.assert_close(served.head.weight, reference.head.weight)


def test_pull_discards_gradients_of_earlier_passes() -> None:
    model = Model(ServedEmbedding(20, 3))
    server = ParameterServer(model, torch.optim.SGD, lr=1.0)
    server.pull()
    before = model.embedding(torch.arange(20)).detach().clone()
    model(torch.tensor([3])).backward()  # not pushed, for example because its loss is not finite
    server.pull()
    model.zero_grad()
    server.push()
    torch.testing.assert_close(model.embedding(torch.arange(20)).detach(), before)


def test_initial_values_do_not_depend_on_the_number_of_servers() -> None:
    rows = Rows(10_000, 2, 3)
    everything = rows.draw(0, 10_000)
    bounds = rows.bounds(3)
    torch.testing.assert_close(torch.cat([rows.draw(*bounds[i : i + 2]) for i in range(3)]), everything, rtol=0, atol=0)
    assert abs(everything.mean()) < 0.05 and abs(everything.std() - 1) < 0.05
    assert not torch.equal(Rows(10_000, 2, 4).draw(0, 9), everything[:9])
    assert not torch.equal(everything[:4096], everything[4096:8192])


@pytest.mark.parametrize("optimizer", SPARSE, ids=lambda one: str(one.__name__))
def test_state_resumes_with_another_number_of_servers(optimizer: Any) -> None:
    making = Making([], optimizer, {"lr": 0.1}, 0, [Rows(11, 2, 1)])
    states = cut({"weights": [None], "optimizer": [{}]}, making, 1)
    table = Part(making, 0, 1, states[0]).tables[0]
    assert torch.equal(table.get(torch.tensor([10, 0])), Rows(11, 2, 1).draw(0, 11)[[10, 0]])
    parts = [
        Part(making, i, 3, state) for i, state in enumerate(cut({"weights": [None], "optimizer": [{}]}, making, 3))
    ]
    for step in range(6):
        if step == 3:
            parts = [Part(making, i, 2, one) for i, one in enumerate(cut(join([p.state() for p in parts]), making, 2))]
        rows = torch.randperm(4).sort().values  # the last servers hold none of these rows
        push = RowGradients(rows, torch.randn(len(rows), 2))
        table.step([push])
        bounds = making.tables[0].bounds(len(parts))
        for part, first, last in zip(parts, bounds[:-1], bounds[1:], strict=True):
            own = (rows >= first) & (rows < last)
            part.tables[0].step([RowGradients(rows[own], push.values[own])])
    torch.testing.assert_close(torch.cat([part.tables[0].state()[0] for part in parts]), table.state()[0])


def test_gradients_round_trip_through_bytes() -> None:
    given = [RowGradients(torch.tensor([3, 9]), torch.rand(2, 4)), RowGradients(torch.tensor([1]), torch.rand(1, 2))]
    data = torch.frombuffer(bytearray(write_gradients(given)), dtype=torch.uint8).numpy()
    for one, other in zip(read_gradients(data, [4, 2]), given, strict=True):
        torch.testing.assert_close(one, other)


def test_invalid_arguments_and_indices_are_refused() -> None:
    for arguments, said in (((0, 2), "rows=0 is not an integer of"), ((2, 1.5), "dim=1.5"), ((2, 2, -1), "seed")):
        with pytest.raises(StreamError, match=said):
            ServedEmbedding(*arguments)  # type: ignore[arg-type]
    model = Model(ServedEmbedding(5, 3))
    with pytest.raises(StreamError, match="its rows are not on a server yet"):
        model(torch.tensor([1]))
    with pytest.raises(StreamError, match="which supports Adagrad, Adam, SGD"):
        ParameterServer(model, torch.optim.AdamW)
    with pytest.raises(StreamError, match="SGD steps the rows of a ServedEmbedding, with lr. Leave out momentum"):
        ParameterServer(model, torch.optim.SGD, lr=0.1, momentum=0.9)
    ParameterServer(model, torch.optim.SGD, lr=0.1)
    for indices in (torch.tensor([1.0]), [1]):
        with pytest.raises(StreamError, match="indices are (torch.float32|list). Give a tensor of integers"):
            model.embedding(indices)
    with pytest.raises(IndexError, match="rows -1 to 7 of an embedding of 5 rows"):
        model.embedding(torch.tensor([7, -1]))
