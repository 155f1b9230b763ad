"""mpidata.DataLoader: batches of a map-style dataset, made on the job's loaders."""
