"""Writes all samples of one simulation of the Python solver on several ranks: heat2d_samples.py PARAMETERS FILE.npy."""

import json
import sys

import numpy
from heat2d import simulate
from mpi4py import MPI

blocks = numpy.array([u.copy() for _, u in simulate(MPI.COMM_WORLD, json.loads(sys.argv[1]))])
parts = MPI.COMM_WORLD.gather(blocks)
if parts:
    numpy.save(sys.argv[2], numpy.concatenate(parts, axis=1))
