"""Samples for a training script without a job: recorded ones, or made up."""
