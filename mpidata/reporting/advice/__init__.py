"""What held a job back, and what would be balanced."""
