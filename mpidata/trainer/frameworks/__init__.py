"""What frameworks around the training loop need to know of streams and shares; none of them is imported here."""
