"""Copy batches to a device while the training loop uses earlier ones."""
