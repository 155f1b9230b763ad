"""Replicas of several ranks: the first rank draws, and its mates get the same batches."""
