"""Data in files: the order that an epoch goes through it."""
