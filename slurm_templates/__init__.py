"""Templates of batch scripts, which `mpidata.launch` renders. A data package without code."""
