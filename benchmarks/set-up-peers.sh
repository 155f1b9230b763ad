#!/bin/sh
# Installs what the peers need: set-up-peers.sh <python of their environment>, run from the top folder.
# A peer that cannot be installed is left out; the table notes it.
set -u
python=$1
grep -v '^#' benchmarks/requirements.txt | while read -r package; do
    "$python" -m pip --disable-pip-version-check install -q -c constraints.txt "$package" || echo "Left out: $package" >&2
done
# RUNLEVEL keeps Debian from starting a Redis of its own.
RUNLEVEL=1 sh tools/system-packages.sh redis-server=redis-server || echo "Left out: redis-server" >&2
