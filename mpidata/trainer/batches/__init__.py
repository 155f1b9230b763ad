"""Memory of batches: of samples that are alike, and of samples with lengths of their own."""
