"""Tell signals from noise, with the rows of part files that the job's loaders read and shuffle."""

import torch
import torch.distributed as dist
from make_parts import FEATURES
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from mpidata import FileDataset

if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    data = FileDataset("parts/*.parquet", batch_size=2048, columns={"x": FEATURES, "y": "signal"}, drop_last=True)
    layers = [nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1), nn.Flatten(0)]
    model = DistributedDataParallel(nn.Sequential(*layers))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    loss_function = nn.BCEWithLogitsLoss()
    for epoch in range(3):
        right = seen = 0
        for batch in data:
            scores = model(batch["x"])
            loss = loss_function(scores, batch["y"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += int(((scores > 0) == (batch["y"] > 0.5)).sum())
            seen += len(scores)
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: {len(data)} batches, {100 * right / seen:.0f}% right", flush=True)
    dist.destroy_process_group()
