"""Trainers that run apart for some steps, and average what they have learned."""
