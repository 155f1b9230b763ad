"""The command of a request, run on a host: on_host.py <request.json>; its output and exit status are the command's."""

import json
import sys

from agent import run_on

with open(sys.argv[1]) as request:
    folder, host, command, cwd, environment = json.load(request)
sys.exit(run_on(folder, host, command, cwd, environment))
