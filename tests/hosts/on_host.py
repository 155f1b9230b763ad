"""Runs the command of a request on a host, with its output and exit status: on_host.py <request.json>."""

import json
import sys

from agent import run_on

with open(sys.argv[1]) as request:
    folder, host, command, cwd, environment = json.load(request)
sys.exit(run_on(folder, host, command, cwd, environment))
