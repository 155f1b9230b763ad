"""What the scheduler writes of a run into its folder: events, figures over time, the summary."""
