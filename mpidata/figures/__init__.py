"""What a run writes besides the scheduler's own files: values for loggers, pictures, a description of the machine."""
