#!/bin/sh
# Makes a virtual environment with pip in it: make-venv.sh <python> <folder>
# Also works if Debian's python3 lacks its venv package, or if only pip is available.
set -u
python=$1
venv=$2
here=$(dirname "$0")

if ! command -v "$python" >/dev/null 2>&1; then
    echo "There is no '$python'. Install Python 3.10 or newer, or name yours: make PYTHON=/path/to/python3" >&2
    exit 1
fi
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
    echo "'$python' is Python $version; mpidata needs 3.10 or newer. Name another: make PYTHON=/path/to/python3" >&2
    exit 1
fi

usable() { "$venv/bin/python" -m pip --version >/dev/null 2>&1; }

usable && exit 0
"$python" -m venv "$venv" >/dev/null 2>&1
usable && exit 0
rm -rf "$venv"
# This name is never a command, so the package is always installed.
sh "$here/system-packages.sh" "python$version-venv=python$version-venv" && "$python" -m venv "$venv"
usable && exit 0
rm -rf "$venv"
if "$python" -m pip install --target build/virtualenv virtualenv; then
    PYTHONPATH=build/virtualenv "$python" -m virtualenv -q "$venv"
fi
usable && exit 0
rm -rf "$venv"
echo "No virtual environment could be made with '$python' (Python $version). Install its venv module" \
    "(Debian, Ubuntu: sudo apt-get install python$version-venv)." >&2
exit 1
