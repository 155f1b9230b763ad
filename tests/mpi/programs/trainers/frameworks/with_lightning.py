"""Trainer with Lightning. Argument: whether the stream comes through a `loader` or a data `module`."""

import sys

import lightning
import torch
from save import save
from torch.utils.data import DataLoader

import mpidata


class Surrogate(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(1, 24)
        self.used, self.validated = [], []

    def training_step(self, batch, index):
        self.used += zip(batch["simulation"], batch["step"], strict=True)
        prediction = self.net(batch["parameters"].float())
        return torch.nn.functional.mse_loss(prediction, batch["u"].flatten(1))

    def validation_step(self, batch, index):
        self.validated += zip(batch["simulation"].tolist(), batch["step"].tolist(), strict=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-3)


class Stream(lightning.LightningDataModule):
    def train_dataloader(self):
        return DataLoader(mpidata.MPIStreamDataset(), batch_size=7)


if sys.argv[1] == "loader":
    stream = mpidata.MPIStreamDataset(batch_size=7)
model = Surrogate()
trainer = lightning.Trainer(
    strategy="ddp",
    devices=2,
    accelerator="cpu",
    max_epochs=1,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    num_sanity_val_steps=0,
    enable_model_summary=False,
)
if sys.argv[1] == "loader":
    trainer.fit(model, DataLoader(stream, batch_size=None), DataLoader(stream.validation(), batch_size=5))
else:
    trainer.fit(model, datamodule=Stream())
save(model.used, model, rank=trainer.global_rank, world=trainer.world_size, validated=model.validated)
