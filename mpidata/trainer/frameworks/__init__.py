"""Support for frameworks that run the training loop; none of them is imported here."""
