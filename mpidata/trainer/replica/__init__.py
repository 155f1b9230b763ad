"""Replicas of several ranks: the first one draws, and its mates get the same batches."""
