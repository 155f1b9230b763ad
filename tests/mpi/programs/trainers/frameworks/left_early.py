"""Trainer that leaves passes over a stream early, through wrappers that prefetch a batch, as users write them.

Argument: `whole` or `samples`, for accelerate's loaders around batches or samples, or `lightning`.
"""

import json
import os
import sys

import torch

import mpidata

how = sys.argv[1]
used: list[tuple[int, int]] = []


def use(batch: dict[str, torch.Tensor]) -> None:
    used.extend(zip(batch["simulation"].tolist(), batch["step"].tolist(), strict=True))


def with_accelerate() -> float:
    from accelerate import Accelerator

    accelerator = Accelerator()
    stream = mpidata.MPIStreamDataset(batch_size=4 if how == "whole" else None)
    model = torch.nn.Linear(1, 24)
    loader = torch.utils.data.DataLoader(stream, batch_size=None if how == "whole" else 4)
    model, optimizer, loader = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=1e-3), loader)
    while not stream.over:
        for number, batch in enumerate(loader):
            use(batch)
            accelerator.backward(
                torch.nn.functional.mse_loss(model(batch["parameters"].float()), batch["u"].flatten(1))
            )
            optimizer.step()
            if number == 2:
                break
    return float(next(model.parameters()).sum())


def with_lightning() -> float:
    import lightning

    stream = mpidata.MPIStreamDataset(batch_size=4, batches_per_epoch=3)

    class Model(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = torch.nn.Linear(1, 24)

        def train_dataloader(self) -> torch.utils.data.DataLoader:
            return torch.utils.data.DataLoader(stream, batch_size=None)

        def training_step(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
            use(batch)
            return torch.nn.functional.mse_loss(self.net(batch["parameters"].float()), batch["u"].flatten(1))

        def on_train_epoch_end(self) -> None:
            self.trainer.should_stop = stream.over

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=1e-3)

    model = Model()
    lightning.Trainer(
        max_epochs=-1, reload_dataloaders_every_n_epochs=1, accelerator="cpu", strategy="ddp",
        devices=int(os.environ["LOCAL_WORLD_SIZE"]), logger=False, enable_checkpointing=False,
        enable_progress_bar=False,
    ).fit(model)  # fmt: skip
    return float(next(model.parameters()).sum())


weights = with_lightning() if how == "lightning" else with_accelerate()
with open(f"used-{os.environ['RANK']}.json", "w") as file:
    json.dump({"used": used, "weights": weights}, file)
