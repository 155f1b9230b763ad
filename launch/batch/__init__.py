"""Batch systems and their hosts: allocations, scripts, the places of the ranks."""
