"""Trainer: only joins the job, early, because it does not import torch."""

from mpidata.trainer import join

join.join()
