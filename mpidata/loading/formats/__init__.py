"""The formats of part files: what is in them, and their rows as arrays."""
