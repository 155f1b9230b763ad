"""libmpidata and the MPI it was built with, as Python sees them."""
