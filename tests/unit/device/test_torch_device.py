"""What the torch device requests from torch: which stream does what. A stand-in for torch.cuda records it."""

import contextlib
import functools
import inspect
import types

import pytest
import torch

from mpidata.device import device as device_module
from mpidata.device.device import TorchDevice


class Module:
    """A stand-in for torch.cuda and torch.xpu."""

    def __init__(self):
        self.said, self.here = [], ["training"]

        class Stream:
            def __init__(stream, device):
                self.said.append(("stream", str(device)))

            def wait_event(stream, event):
                raise AssertionError("the copies wait")

        class Current:
            def wait_event(current, event):
                self.said.append(("training waits for", event.number))

        class Event:
            def __init__(event):
                event.number = self.said.count("event")

            def record(event, stream):
                self.said.append(("recorded", event.number, "training" if stream is self.current else "copies"))

        self.Stream, self.Event, self.current = Stream, Event, Current()

    @contextlib.contextmanager
    def stream(self, stream):
        self.here.append("copies" if isinstance(stream, self.Stream) else "training")
        yield
        self.here.pop()

    def current_stream(self, device):
        assert str(device) == "cpu"
        return self.current


@pytest.fixture
def module(monkeypatch):
    module = Module()
    monkeypatch.setattr(torch, "cpu", module)

    def to(tensor, device, non_blocking=False):
        module.said.append(("to", str(device), non_blocking, "on", module.here[-1]))
        return tensor.clone()

    monkeypatch.setattr(torch.Tensor, "to", to)
    monkeypatch.setattr(
        torch.Tensor, "record_stream", lambda tensor, stream: module.said.append(("kept for", stream is module.current))
    )
    monkeypatch.setattr(
        torch.Tensor, "pin_memory", lambda tensor: module.said.append(("pinned", tensor.is_contiguous())) or tensor
    )
    return module


def test_copies_use_a_separate_stream_that_the_training_waits_for(module):
    device = TorchDevice(torch.device("cpu"))
    assert module.said == [("stream", "cpu")] and device.draws_page_locked
    host = torch.arange(6.0).reshape(2, 3)
    copied = device.copy(device.pin(host.T))
    assert torch.equal(copied, host.T)
    event = device.copied()
    device.wait_for(event)
    device.keep(copied)
    device.used()
    assert module.said[1:] == [
        ("pinned", True),
        ("to", "cpu", True, "on", "copies"),
        ("recorded", 0, "copies"),
        ("training waits for", 0),
        ("kept for", True),
        ("recorded", 0, "training"),
    ]
    assert module.here == ["training"]


@pytest.mark.parametrize("kind", ["cuda", "xpu"])
def test_torch_provides_the_required_stream_and_event_calls(kind):
    module, device = getattr(torch, kind), torch.device(kind, 0)
    calls = [
        (module.Stream.__new__, module.Stream, device),
        (module.Stream.wait_event, None, None),
        (functools.partial(module.Event.__new__, module.Event, **device_module._EVENTS.get(kind, {})),),
        (module.Event.record, None, None),
        (module.Event.query, None),
        (module.Event.synchronize, None),
        (module.current_stream, device),
        (module.stream, None),
    ]
    for call, *arguments in calls:
        inspect.signature(call).bind(*arguments)


def test_the_host_sleeps_while_it_waits_for_cuda(monkeypatch):
    module = Module()
    module.Event = lambda **options: options.pop("blocking") and types.SimpleNamespace(record=module.said.append)
    monkeypatch.setattr(torch, "cuda", module)
    module.current_stream = lambda device: "current"
    TorchDevice(torch.device("cuda", 0)).used()
    assert module.said == [("stream", "cuda:0"), "current"]
