"""The scheduler's management of inference ranks and learners."""
