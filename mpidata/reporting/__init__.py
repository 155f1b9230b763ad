"""The report of a run, as an HTML page, and its bottleneck, in words."""
