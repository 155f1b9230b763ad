"""Prints a program's peak memory in MB, before the first sample and at the end."""

import resource


def print_peak(name: str) -> None:
    print(name, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
