"""The parts of the weights: servers make the same steps as one optimizer, and resume from a state."""

from typing import Any

import pytest
import torch

from mpidata.servers.flat_weights import size_of, stretches
from mpidata.servers.part import ELEMENTWISE, Making, Part, State, cut, join
from mpidata.trainer.served.weights import Weights

SETTINGS: dict[str, dict[str, Any]] = {"SGD": {"lr": 0.1, "momentum": 0.9}}


class Net(torch.nn.Module):
    """Weights of three dtypes, one of them not contiguous."""

    def __init__(self) -> None:
        super().__init__()
        self.a = torch.nn.Parameter(torch.randn(3, 5))
        self.b = torch.nn.Parameter(torch.randn(7, dtype=torch.float64))
        self.c = torch.nn.Parameter(torch.randn(4, 2).t())
        self.d = torch.nn.Parameter(torch.randn(3).bfloat16())
        assert not self.c.is_contiguous()

    def give_gradients(self) -> None:
        for parameter in self.parameters():
            parameter.grad = torch.randn_like(parameter)


def served(net: Net, making: Making, servers: int, state: State | None = None) -> tuple[Weights, list[Part]]:
    weights = Weights(list(net.parameters()), servers)
    state = state or {"weights": weights.state(), "optimizer": [{} for _ in making.kinds]}
    states = cut(state, making, servers)
    return weights, [Part(making, server, servers, states[server]) for server in range(servers)]


def step(weights: Weights, parts: list[Part]) -> None:
    weights.take_gradients()
    for part, gradients, own in zip(parts, weights.gradients, weights.parts, strict=True):
        part.step([torch.from_numpy(gradients)])
        own[:] = part.bytes.numpy()
    weights.give()


@pytest.mark.parametrize("name", sorted(one.__name__ for one in ELEMENTWISE))
def test_parts_match_one_optimizer_also_after_a_resume_with_other_servers(name: str) -> None:
    torch.manual_seed(1)
    net, reference = Net(), Net()
    reference.load_state_dict(net.state_dict())
    settings = SETTINGS.get(name, {"lr": 0.01})
    optimizer = getattr(torch.optim, name)
    alone = optimizer(reference.parameters(), **settings)
    making = Making(Weights(list(net.parameters()), 1).kinds, optimizer, settings, 0)
    weights, parts = served(net, making, 3)
    for i in range(6):
        if i == 3:  # as after a resume, with other servers
            weights, parts = served(net, making, 2, join([part.state() for part in parts]))
        net.give_gradients()
        for own, other in zip(net.parameters(), reference.parameters(), strict=True):
            assert own.grad is not None
            other.grad = own.grad.clone()
        alone.step()
        step(weights, parts)
        for own, other in zip(net.parameters(), reference.parameters(), strict=True):
            torch.testing.assert_close(own, other)


def test_step_of_several_pushes_uses_their_mean() -> None:
    weights = Weights([torch.nn.Parameter(torch.zeros(3))], 1)
    making = Making(weights.kinds, torch.optim.SGD, {"lr": 1.0}, 0)
    part = Part(making, 0, 1, {"weights": weights.state(), "optimizer": [{}]})
    part.step([torch.full((3,), value).view(torch.uint8) for value in (1.0, 2.0, 6.0)])
    assert part.bytes.view(torch.float32).tolist() == [-3.0] * 3


def test_weights_are_spread_evenly_over_the_servers() -> None:
    weights = Weights([torch.nn.Parameter(torch.zeros(10)), torch.nn.Parameter(torch.zeros(3, dtype=torch.half))], 1)
    dealt = stretches(weights.kinds, 4)
    assert [[stretch.last - stretch.first for stretch in part] for part in dealt] == [[2, 0], [3, 1], [2, 1], [3, 1]]
    assert [size_of(part) for part in dealt] == [8, 14, 10, 14]


def test_parameter_without_a_gradient_gets_a_gradient_of_zeros() -> None:
    parameter = torch.nn.Parameter(torch.ones(4))
    weights = Weights([parameter], 2)
    parameter.grad = torch.ones(4)
    weights.take_gradients()
    parameter.grad = None
    weights.take_gradients()
    assert all(not gradients.any() for gradients in weights.gradients)
