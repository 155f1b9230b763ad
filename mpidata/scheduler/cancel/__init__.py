"""Simulations that are cancelled."""
