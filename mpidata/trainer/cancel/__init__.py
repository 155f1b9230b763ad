"""Cancel simulations that the training no longer needs."""
