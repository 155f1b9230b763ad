"""Trainers whose weights are on parameter servers."""
