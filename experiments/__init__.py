"""Experiments: what training online changes about the model, with the same data, steps or time. `make experiments`."""
