"""Batches that all trainers draw together, and the resulting weights of gradients."""
