"""The scheduler, rank 0: which simulation runs where, what is done about deaths, and when the job is over."""
