"""What a run has left in its folder, read again: figures over time, events; and the memory that a job needs."""
