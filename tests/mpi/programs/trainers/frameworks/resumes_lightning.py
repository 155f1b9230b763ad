"""Trainer with Lightning: records what it trained on, also in the job's checkpoints.

Argument: `registered`: model and optimizer are registered; `last`: resumes from Lightning's own last checkpoint;
`steps`: likewise, from a step within the epoch; `both`: also registers them.
"""

import json
import os
import sys
import time
from pathlib import Path

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.utils.data import DataLoader

import mpidata


class Surrogate(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(1, 24)
        self.used = []

    def training_step(self, batch, index):
        self.used += zip(batch["simulation"].tolist(), batch["step"].tolist(), strict=True)
        Path(f"at-{len(self.used) // 4}").touch()
        if not stream.resumed:
            time.sleep(0.1)
        return torch.nn.functional.mse_loss(self.net(batch["parameters"].float()), batch["u"].flatten(1))

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=1e-3)
        if sys.argv[1] in ("registered", "both"):
            stream.register(model=self, optimizer=optimizer, used=Used())
        return optimizer


class Used:
    def state_dict(self):
        return {"used": list(model.used)}

    def load_state_dict(self, state):
        model.used = state["used"]
        print("=> resumed", stream.resumed, len(model.used) // 4)


stream = mpidata.MPIStreamDataset(batch_size=4)
model = Surrogate()
every = {"steps": 7, "both": 1}.get(sys.argv[1])  # the job's checkpoint is of step 8 or soon after
keep = {"every_n_train_steps": every} if every else {}
trainer = lightning.Trainer(
    strategy="ddp",
    devices=int(os.environ["WORLD_SIZE"]),
    accelerator="cpu",
    max_epochs=1,
    logger=False,
    callbacks=[ModelCheckpoint(Path(os.environ["MPIDATA_RUN"]) / "lightning", save_last=True, **keep)],
    enable_progress_bar=False,
    enable_model_summary=False,
)
own = None if sys.argv[1] == "registered" else "last"
trainer.fit(model, DataLoader(stream, batch_size=None), ckpt_path=own)
Path(f"used-{os.environ['RANK']}.json").write_text(json.dumps({"steps": trainer.global_step, "used": model.used}))
