"""The run folder of a start: a new one, or that of a run to resume."""
