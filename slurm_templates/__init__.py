"""Templates of batch scripts, rendered by `mpidata.launch`. A data package: it holds no code."""
