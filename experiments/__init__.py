"""Experiments: how online training changes the model, with equal data, steps or time. `make experiments` runs them."""
