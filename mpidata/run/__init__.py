"""The files of a run: the plan of its ranks, its folder, events, exit notes, and requests to it."""
