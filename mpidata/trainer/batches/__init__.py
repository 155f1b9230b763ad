"""Memory of batches: of samples with equal shapes, and of samples with lengths of their own."""
