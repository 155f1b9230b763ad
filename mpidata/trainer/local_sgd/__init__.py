"""Trainers that run apart for some steps, and then average their parameters."""
