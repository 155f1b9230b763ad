"""Trainer with transformers' Trainer: records what it trained on, also in the job's checkpoints.

Argument: `registered`: all is registered; `older`: resumes from its own oldest checkpoint; `nothing`: neither;
`both`: all is registered, and it resumes from its own newest checkpoint.
"""

import json
import os
import sys
import time
from pathlib import Path

import torch
import transformers

import mpidata


class Surrogate(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(1, 24)
        self.used = []

    def forward(self, parameters, u, simulation, step):
        self.used += zip(simulation.tolist(), step.tolist(), strict=True)
        return {"loss": torch.nn.functional.mse_loss(self.net(parameters.float()), u.flatten(1))}


class Place(transformers.TrainerCallback):
    step = 0

    def on_train_begin(self, arguments, state, control, **rest):
        state.global_step = max(state.global_step, self.step)

    def on_step_end(self, arguments, state, control, **rest):
        self.step = state.global_step
        Path(f"at-{self.step}").touch()
        if not stream.resumed:
            time.sleep(0.1)

    def state_dict(self):
        return {"step": self.step, "used": list(model.used)}

    def load_state_dict(self, state):
        self.step, model.used = state["step"], state["used"]


stream = mpidata.MPIStreamDataset()
model = Surrogate()
run = Path(os.environ["MPIDATA_RUN"])
arguments = transformers.TrainingArguments(
    output_dir=run / "transformers",
    per_device_train_batch_size=4,
    max_steps=1000,
    save_steps=5,
    use_cpu=True,
    report_to=[],
    disable_tqdm=True,
    ddp_find_unused_parameters=False,
)
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
scheduler = transformers.get_constant_schedule(optimizer)
place = Place()
trainer = transformers.Trainer(
    model=model, args=arguments, train_dataset=stream, callbacks=[place], optimizers=(optimizer, scheduler)
)
if sys.argv[1] in ("registered", "both"):
    stream.register(model=model, optimizer=optimizer, scheduler=scheduler, place=place)
print("=> resumed", stream.resumed, place.step)
own = {"older": str(run / "transformers" / "checkpoint-5"), "both": True}.get(sys.argv[1]) if stream.resumed else None
trainer.train(resume_from_checkpoint=own)
note = {"steps": trainer.state.global_step, "used": model.used}
Path(f"used-{os.environ['RANK']}.json").write_text(json.dumps(note))
