"""Many producers, one training loop: what all ways have in common, and the ways other than mpidata."""
