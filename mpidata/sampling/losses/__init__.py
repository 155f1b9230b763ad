"""Losses by simulation, sent from the trainers to the scheduler, and their table there."""
