"""What the scheduler writes into the run folder: events, figures over time, the summary."""
