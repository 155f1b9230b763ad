"""Reading a run folder: figures over time, events, the summary."""
