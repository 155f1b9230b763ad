"""What is written about a run while it goes on, besides the scheduler's own files: loggers, pictures, the machine."""
