"""Trainer of the loaders' campaign: records the rows, or indices, of each epoch in order, and checks their values.

`draw.json` names the data to train on. The trainer starts each of the KILLS+1 parts of its batches only once enough
kills were made; the file `kills` has a byte per kill.
"""

import json
import os
import pathlib
import random
import time

import torch

import mpidata

one = json.loads(pathlib.Path("draw.json").read_text())


def slowly(chunk):
    time.sleep(one["work_s"] * len(chunk["row"]))
    return chunk


class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return one["rows"]

    def __getitem__(self, index):
        time.sleep(one["work_s"])
        return {"row": index, "x": values(torch.tensor([index]))[0].repeat(one["repeat"])}


def values(rows):
    return torch.stack([rows + 0.25, -rows - 0.5], dim=1).double()


def make():
    if one["dataset"] == "DataLoader":
        wanted = {key: one[key] for key in ("batch_size", "shuffle", "drop_last", "share", "prefetch_factor")}
        return mpidata.DataLoader(Samples(), **wanted)
    wanted = {key: one[key] for key in ("batch_size", "shuffle", "drop_last", "share", "open_parts")}
    return mpidata.FileDataset("parts", columns={"row": "row", "x": ["a", "b"]}, transform=slowly, **wanted)


def wait_for_kill(done, of):
    while (made := pathlib.Path("kills").stat().st_size) < one["kills"] and done >= of * (made + 1) // (
        one["kills"] + 1
    ):
        time.sleep(0.01)


if __name__ == "__main__":
    data = make()
    pause = random.Random(one["seed"] + int(os.environ["RANK"]))
    epochs = []
    for epoch in range(one["epochs"]):
        seen = []
        for number, batch in enumerate(data):
            rows = batch["row"]
            expected = values(rows).repeat(1, one["repeat"])
            assert torch.equal(batch["x"], expected), (epoch, number)
            seen += rows.tolist()
            time.sleep(pause.uniform(0, 2 * one["step_s"]))
            wait_for_kill(epoch * len(data) + number + 1, one["epochs"] * len(data))
        epochs.append(seen)
    pathlib.Path(f"census-{os.environ['RANK']}.json").write_text(json.dumps(epochs))
