"""The formats of part files: their columns, and their rows as arrays."""
