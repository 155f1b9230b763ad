"""Mimics the launcher of a foreign MPI: the job's MPI sees N worlds of one rank. Arguments: N COMMAND..."""

import os
import subprocess
import sys

size = int(sys.argv[1])
ranks = []
for rank in range(size):
    variables = {"PMI_RANK": str(rank), "PMI_SIZE": str(size), "PMI_ID": str(rank), "PMI_PORT": "x"}
    ranks.append(subprocess.Popen(sys.argv[2:], env={**os.environ, **variables}))
sys.exit(max(abs(rank.wait()) for rank in ranks))
