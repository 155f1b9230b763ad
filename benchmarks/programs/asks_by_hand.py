"""Answers asks_by_hand.c, which is rank 0, in hand-written MPI: calls the same function, and yields between probes."""

import os

import numpy as np
import torch
from inference_functions import identity
from mpi4py import MPI

world, status = MPI.COMM_WORLD, MPI.Status()
with torch.no_grad():
    while True:
        while not world.Iprobe(source=0, tag=MPI.ANY_TAG, status=status):
            os.sched_yield()
        asked = np.empty((1, status.Get_count(MPI.FLOAT)), np.float32)
        world.Recv(asked, source=0, tag=status.Get_tag())
        if status.Get_tag() == 1:
            break
        found = identity({"x": torch.from_numpy(asked)})["y"]
        world.Send(found.numpy(), dest=0, tag=0)
