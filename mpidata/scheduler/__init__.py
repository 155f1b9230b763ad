"""The scheduler, rank 0: which assigns simulations to groups, handles deaths, and ends the job."""
