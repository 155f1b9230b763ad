"""Training with weights on parameter servers."""
