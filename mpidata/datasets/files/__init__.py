"""mpidata.FileDataset: rows of part files, dealt to trainers in the order of an epoch."""
