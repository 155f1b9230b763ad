"""Simulations that the training needs no more."""
