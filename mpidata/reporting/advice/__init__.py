"""The bottleneck of a job, and the numbers of groups and trainers that would be balanced."""
