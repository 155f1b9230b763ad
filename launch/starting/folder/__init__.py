"""Folders of a start: the run folder, a new one or that of a run to resume, and those for temporary files."""
