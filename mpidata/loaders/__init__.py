"""The loaders of a job: ranks that read and prepare data for the trainers."""
