"""Trainer with Lightning: overfits and trains on datasets on loaders; overfitting on the stream is refused."""

import json
import os

import lightning
import numpy as np
import torch
from torch.utils.data import DataLoader

import mpidata

SAMPLES, SIZE = 40, 4


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        return torch.tensor(float(index))


class Noting(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))
        self.seen = []

    def training_step(self, batch, index):
        numbers = batch if isinstance(batch, torch.Tensor) else batch["data"]
        self.seen.append([self.current_epoch, numbers.tolist()])
        return self.weight * 1.0

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def fit(data, **arguments):
    """Train; return pairs of an epoch and the numbers of a batch."""
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    model = Noting()
    trainer = lightning.Trainer(
        accelerator="cpu",
        strategy="ddp",
        devices=int(os.environ["WORLD_SIZE"]),
        enable_checkpointing=False,
        **quiet,
        **arguments,
    )
    trainer.fit(model, data)
    return model.seen


MAKERS = {
    "share": lambda: mpidata.DataLoader(Numbers(), SIZE, shuffle=True, share=True),
    "files": lambda: mpidata.FileDataset("rows.npy", SIZE),
    "files in a loader": lambda: DataLoader(mpidata.FileDataset("rows.npy", SIZE), batch_size=None),
}
mpidata.init_process_group("gloo")
if os.environ["RANK"] == "0":
    np.save("rows.npy", np.arange(float(SAMPLES)))
torch.distributed.barrier()
notes = {}
for name, make in MAKERS.items():
    notes[name] = [fit(make(), max_epochs=3, overfit_batches=2), fit(make(), max_epochs=2)]
stream = mpidata.MPIStreamDataset(batch_size=4)
try:
    fit(DataLoader(stream, batch_size=None), max_epochs=2, overfit_batches=2)
except mpidata.errors.StreamError as error:
    notes["stream"] = str(error)
for _ in stream:
    pass
with open(f"used-{os.environ['RANK']}.json", "w") as file:
    json.dump(notes, file)
