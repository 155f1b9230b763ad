"""Solver: forks in the middle of simulations; the children exit, continue like their parents, or raise."""

import os
import sys


def simulate(alpha, simulation):
    for step in range(20):
        if simulation == 1 and step == 4 and os.fork() == 0:
            sys.exit(0)
        if simulation == 2 and step == 6:
            os.fork()
        if simulation == 3 and step == 7 and os.fork() == 0:
            raise ValueError("in the child")
        yield {"u": [[alpha] * 6] * 4}
