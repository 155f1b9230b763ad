"""Losses by simulation, on their way from the trainers to the scheduler, and their table there."""
