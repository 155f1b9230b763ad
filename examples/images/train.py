"""Tell rings from discs, on images that are generated, rotated, cropped and made noisy on demand."""

import random

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import Dataset, DistributedSampler

from mpidata import DataLoader

SIZE, CROP = 96, 64


class Shapes(Dataset):
    def __len__(self):
        return 1024

    def __getitem__(self, index):
        own = np.random.default_rng(index)  # the image itself is the same in each epoch
        x, y = np.meshgrid(np.arange(SIZE), np.arange(SIZE))
        distance = np.hypot(x - own.uniform(40, 56), y - own.uniform(40, 56))
        radius, ring = own.uniform(14, 24), index % 2
        image = (distance < radius) & (distance > radius * 0.6 * ring)
        return torch.from_numpy(augment(image.astype(np.float32)))[None], ring


def augment(image):
    """Blur, rotate, crop and add noise at random, with a different result in each epoch."""
    for _ in range(random.randrange(8)):
        image = (
            image + np.roll(image, 1, 0) + np.roll(image, 1, 1) + np.roll(image, -1, 0) + np.roll(image, -1, 1)
        ) / 5
    image = np.rot90(image, random.randrange(4))
    top, left = random.randrange(SIZE - CROP), random.randrange(SIZE - CROP)
    crop = image[top : top + CROP, left : left + CROP]
    return (crop + np.random.normal(0.0, 0.3, crop.shape)).astype(np.float32)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    dataset = Shapes()
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=16, sampler=sampler)
    layers = [nn.Conv2d(1, 8, 5, 3), nn.ReLU(), nn.Conv2d(8, 16, 5, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(2)]
    network = nn.Sequential(*layers)
    network(torch.zeros(1, 1, CROP, CROP))
    model = DistributedDataParallel(network)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss_function = nn.CrossEntropyLoss()
    for epoch in range(4):
        sampler.set_epoch(epoch)
        right = seen = 0
        for images, rings in loader:
            scores = model(images)
            loss = loss_function(scores, rings)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += int((scores.argmax(1) == rings).sum())
            seen += len(rings)
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: {right / seen:.0%} right", flush=True)
    dist.destroy_process_group()
