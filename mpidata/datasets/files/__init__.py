"""mpidata.FileDataset: rows of part files, dealt out to trainers in the order of an epoch."""
