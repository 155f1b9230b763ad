"""Which devices a script may request, and the errors for others."""

import types

import pytest
import torch

from mpidata.device.choice import check_prefetch, choose_device
from mpidata.device.device import TorchDevice
from mpidata.errors import StreamError

NEEDED = ("current_stream", "stream", "Stream", "Event")


@pytest.fixture
def two_gpus(monkeypatch):
    module = types.SimpleNamespace(**{name: lambda *_: None for name in NEEDED})
    module.is_available, module.device_count, module.current_device = lambda: True, lambda: 2, lambda: 1
    monkeypatch.setattr(torch, "cuda", module)
    return module


@pytest.mark.parametrize("device", [None, "cpu", "cpu:0", torch.device("cpu")])
def test_cpu_or_no_device_leaves_batches_in_cpu_memory(device):
    assert choose_device(device, "DataLoader", pin_memory=True) is None


@pytest.mark.parametrize("device", ["cuda", "cuda:1", torch.device("cuda"), torch.device("cuda", 1)])
def test_a_device_without_a_number_is_the_current_one(two_gpus, device):
    chosen = choose_device(device, "MPIStreamDataset")
    assert isinstance(chosen, TorchDevice) and chosen._device == torch.device("cuda", 1)


@pytest.mark.parametrize(
    ("device", "sentence"),
    [
        (
            "cuda:9",
            r"MPIStreamDataset\(device='cuda:9'\): torch sees 2 of type 'cuda' on \S+: cuda:0, cuda:1. Name one",
        ),
        ("cuda:999", r"device='cuda:999'\): torch sees 2 of type 'cuda'"),  # torch parses it as -25
        (
            "meta",
            r"cannot be copied ahead of the loop to 'meta', which has no memory. Use \"cuda\", or leave device out",
        ),
        ("mps", r"cannot be copied ahead of the loop to 'mps', which lacks current_device, .*stream.* in torch 2"),
        ("gpu", r"MPIStreamDataset\(device='gpu'\) is not a torch device: Expected one of cpu, .* Give \"cuda\""),
        ("cuda:x", r"is not a torch device: Invalid device string: 'cuda:x'. Give \"cuda\""),
        (1.5, r"MPIStreamDataset\(device=1.5\): float is not a device. Give \"cuda\", \"cuda:1\" or a torch.device."),
        (True, "bool is not a device"),
        (["cuda"], r"device=\['cuda'\]\): list is not a device"),
        (torch.device("cuda", 7), r"MPIStreamDataset\(device='cuda:7'\): torch sees 2"),
    ],
)
def test_unusable_devices_are_refused(two_gpus, device, sentence):
    with pytest.raises(StreamError, match=sentence):
        choose_device(device, "MPIStreamDataset")


def test_device_is_refused_if_torch_sees_none(two_gpus, monkeypatch):
    two_gpus.is_available = lambda: False
    with pytest.raises(
        StreamError, match=r"sees no device of type 'cuda' on \S+. Run `mpidata doctor` there, or leave"
    ):
        choose_device("cuda", "FileDataset")


def test_device_with_pin_memory_is_refused(two_gpus):
    with pytest.raises(StreamError, match=r"FileDataset\(device='cuda'\) cannot be combined with pin_memory=True"):
        choose_device("cuda", "FileDataset", pin_memory=True)


@pytest.mark.parametrize("prefetch", [0, 3, -1, 1.0, True, "1", None])
def test_invalid_prefetch_counts_are_refused(prefetch):
    with pytest.raises(StreamError, match="batches cannot be copied ahead of the loop. Give 1 or 2."):
        check_prefetch(prefetch)
