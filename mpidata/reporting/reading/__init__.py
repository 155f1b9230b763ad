"""What is in a run folder, read again: figures over time, events, the summary."""
