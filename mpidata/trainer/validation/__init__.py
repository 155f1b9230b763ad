"""The validation samples of a trainer as torch datasets: its share, padded or not, or the samples of all trainers."""
