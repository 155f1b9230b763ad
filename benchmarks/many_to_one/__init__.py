"""Many producers and one training loop: code shared by all ways, and the ways other than mpidata."""
