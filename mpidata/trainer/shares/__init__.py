"""Batches that all trainers draw together, and the weights that gradients have then."""
