"""Watching a job until it is over: its processes, its progress, how it ended, what it leaves."""
