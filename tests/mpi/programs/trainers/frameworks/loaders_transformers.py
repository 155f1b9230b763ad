"""Trainer with transformers' Trainer and a dataset on loaders: two epochs, then the rest from a checkpoint.

Argument: `loader` for an mpidata.DataLoader, `files` for a FileDataset.
"""

import json
import os
import sys

import numpy as np
import torch
import transformers
from torch.utils.data import DataLoader

import mpidata

SAMPLES, AT = 37, 7 if os.environ["WORLD_SIZE"] == "2" else 13  # in the second epoch


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return SAMPLES

    def __getitem__(self, row):
        return {"x": torch.full((1,), row / SAMPLES), "row": torch.tensor(row)}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(1, 1)
        self.batches = []

    def forward(self, x, row):
        self.batches.append(row.tolist())
        return {"loss": self.net(x.float()).square().mean()}


class Trainer(transformers.Trainer):
    def get_train_dataloader(self):
        if sys.argv[1] == "loader":
            shared = os.environ["WORLD_SIZE"] == "2"
            return mpidata.DataLoader(self.train_dataset, batch_size=4, shuffle=True, share=shared)
        return self.accelerator.prepare(DataLoader(mpidata.FileDataset("part.npz", batch_size=4), batch_size=None))


if os.environ["RANK"] == "0":
    np.savez("new.npz", row=np.arange(SAMPLES), x=np.arange(SAMPLES).reshape(-1, 1) / SAMPLES)
    os.rename("new.npz", "part.npz")
mpidata.init_process_group("gloo")
torch.distributed.barrier()
arguments = transformers.TrainingArguments(
    output_dir="transformers",
    num_train_epochs=2,
    save_steps=AT,
    accelerator_config={"dispatch_batches": False},
    use_cpu=True,
    report_to=[],
    disable_tqdm=True,
    ddp_find_unused_parameters=False,
)
found = []
for checkpoint in (None, f"transformers/checkpoint-{AT}"):
    torch.manual_seed(0)
    model = Model()
    trainer = Trainer(model=model, args=arguments, train_dataset=Rows())
    trainer.train(resume_from_checkpoint=checkpoint)
    found.append({"batches": model.batches, "weight": model.net.weight.item(), "steps": trainer.state.global_step})
with open(f"used-{os.environ['RANK']}.json", "w") as file:
    json.dump({"whole": found[0], "resumed": found[1], "at": AT}, file)
