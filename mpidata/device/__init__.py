"""Batches that are copied to a device while the training loop uses those before."""
