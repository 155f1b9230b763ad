"""Trainer on a stand-in for a device: records the samples that its steps used, also in checkpoints.

Argument, in JSON: `batch_size`; `prefetch`; `mode` of the stand-in; `pages`: the buffer passes for page-locked;
`statistics`: record the statistics known at each batch; `checkpoint`: the batch at which all ask for a checkpoint,
after which the first start ends by SIGKILL; `leave`: the batch after which it leaves its loop and the script.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

import torch

import mpidata

sys.path.insert(0, str(Path(__file__).parents[4] / "unit"))
from fake_device import FakeDevice  # noqa: E402

import mpidata.trainer.batches.device_prefetch as on_device  # noqa: E402
import mpidata.trainer.batches.pages as pages  # noqa: E402

options = json.loads(sys.argv[1])
size, at, leave = options["batch_size"], options.get("checkpoint"), options.get("leave")
device = FakeDevice(options.get("mode", "copies late"))
on_device.choose_device = lambda asked, what, pin_memory: device
pages.buffer_is_page_locked = lambda plan: options.get("pages", False)
done = Path(os.environ["MPIDATA_RUN"]) / "checkpoints" / "000001"


class Used:
    def __init__(self):
        self.samples = []

    def take(self, read):
        expected = read["parameters"][:, 0] + read["step"]
        assert torch.equal(read["u"], expected.float().reshape(-1, 1, 1).expand(-1, 4, 6)), read
        self.samples += list(zip(read["simulation"].tolist(), read["step"].tolist(), strict=True))

    def state_dict(self):
        device.finish()  # saving a state on a device waits for the device
        return {"samples": list(self.samples)}

    def load_state_dict(self, state):
        self.samples = state["samples"]


used, ahead, statistics = Used(), 0, []
stream = mpidata.MPIStreamDataset(size, device="cuda", device_prefetch=options.get("prefetch", 1))
stream.register(used=used)
for number, batch in enumerate(stream, stream.resumed + 1):
    assert stream.state_dict() == {"batch": number}
    device.step(batch, used.take)
    ahead += stream._prefetcher.waiting
    if options.get("statistics"):
        of = stream.statistics()["u"]
        statistics.append([of.count.item(), of.mean.item(), of.std.item()])
    if number == at:
        stream.checkpoint()
    if number == leave:
        break
    time.sleep(options.get("pause_s", 0.01))
    if at and not stream.resumed and number >= at:  # the checkpoint is at this batch, or at one drawn ahead
        deadline = time.monotonic() + 0.5
        while not done.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        if done.exists():
            os.kill(os.getpid(), signal.SIGKILL)
device.finish()
notes = {"samples": used.samples, "ahead": ahead, "statistics": statistics, "resumed": stream.resumed}
Path(f"used-{os.environ['RANK']}.json").write_text(json.dumps(notes))
