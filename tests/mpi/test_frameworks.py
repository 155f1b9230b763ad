"""Lightning and accelerate as their users write them: each sample is trained on once, by one of the trainers."""

import json
from collections import Counter

import pytest
from jobs import JobFolder, Result

SIMULATIONS, STEPS = 6, 8

SIMULATE = f"""
def simulate(alpha):
    for step in range({STEPS}):
        yield {{"u": [[alpha + step] * 6] * 4}}
"""

SAVE = """
import json, os

def save(used, model, **values):
    sums = [float(parameter.detach().sum()) for parameter in model.parameters()]
    values |= {"used": [[int(i), int(s)] for i, s in used], "sums": sums}
    with open(f"used-{os.environ['RANK']}.json", "w") as file:
        json.dump(values, file)
"""

LIGHTNING = """
import lightning as L
import torch
from torch.utils.data import DataLoader
import mpidata
from save import save

class Surrogate(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(1, 24)
        self.used = []

    def training_step(self, batch, index):
        self.used += zip(batch["simulation"], batch["step"])
        prediction = self.net(batch["parameters"].float())
        return torch.nn.functional.mse_loss(prediction, batch["u"].flatten(1))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-3)

{data}
model = Surrogate()
trainer = L.Trainer(
    strategy="ddp", devices=2, accelerator="cpu", max_epochs=1, logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False,
)
trainer.fit(model, {loader})
save(model.used, model, rank=trainer.global_rank, world=trainer.world_size)
"""

LOADER = "stream = mpidata.MPIStreamDataset(batch_size=4)\n"
DATA_MODULE = """
class Stream(L.LightningDataModule):
    def train_dataloader(self):
        return DataLoader(mpidata.MPIStreamDataset(), batch_size=4)
"""

ACCELERATE = """
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader
import mpidata
from save import save

accelerator = Accelerator(cpu=True)
model = torch.nn.Linear(1, 24)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
stream = mpidata.MPIStreamDataset(batch_size=4)
model, optimizer, stream = accelerator.prepare(model, optimizer, {stream})
used = []
for batch in stream:
    used += zip(batch["simulation"], batch["step"])
    loss = torch.nn.functional.mse_loss(model(batch["parameters"].float()), batch["u"].flatten(1))
    optimizer.zero_grad()
    accelerator.backward(loss)
    optimizer.step()
accelerator.wait_for_everyone()
save(used, model, rank=accelerator.process_index, world=accelerator.num_processes)
"""


def run(folder: JobFolder, train: str) -> Result:
    folder.write(sim=SIMULATE, save=SAVE, train=train)
    folder.job(
        trainers={"ranks": 2},
        solvers={"function": "sim:simulate"},
        parameters={"count": SIMULATIONS, "space": {"alpha": [0.0, 1.0]}},
    )
    return folder.run(timeout=150)


def check_used(folder: JobFolder, result: Result) -> None:
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    found = [json.loads((folder.path / f"used-{trainer}.json").read_text()) for trainer in range(2)]
    assert [(each["rank"], each["world"]) for each in found] == [(0, 2), (1, 2)]
    assert found[0]["sums"] == found[1]["sums"], "DDP keeps the models the same"
    used = Counter((simulation, step) for each in found for simulation, step in each["used"])
    assert used == Counter((simulation, step) for simulation in range(SIMULATIONS) for step in range(STEPS))


@pytest.mark.parametrize(
    ("data", "loader"),
    [
        (LOADER, "DataLoader(stream, batch_size=None)"),
        pytest.param(DATA_MODULE, "datamodule=Stream()", marks=pytest.mark.full),
    ],
)
def test_lightning_with_ddp(folder: JobFolder, data: str, loader: str) -> None:
    check_used(folder, run(folder, LIGHTNING.format(data=data, loader=loader)))


def test_accelerate(folder: JobFolder) -> None:
    check_used(folder, run(folder, ACCELERATE.format(stream="stream")))


def test_a_loader_that_accelerate_would_deal_out_is_refused(folder: JobFolder) -> None:
    result = run(folder, ACCELERATE.format(stream="DataLoader(stream, batch_size=None)"))
    assert result.status == 1, result.logs()
    assert "deals the batches of one trainer out to all" in result.summary["error"]
    assert "Leave the DataLoader out" in result.summary["error"]
