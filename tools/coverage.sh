#!/bin/sh
# Prints which lines and branches of the Python and C code the tests execute: coverage.sh [<arguments of pytest> ...]
# Works in build/coverage, a copy of this clone with its own environment and a library built with --coverage, so that
# the usual build is unchanged. A process that is killed, or that ends by _exit in C, records no coverage.
# The exit status is that of the tests.
set -eu
cd "$(dirname "$0")/.."
copy=build/coverage
mkdir -p "$copy"
find "$copy" -mindepth 1 -maxdepth 1 ! -name .venv -exec rm -rf {} +
tar -c --exclude='./.venv*' --exclude=./build . | tar -x -C "$copy"
cd "$copy"

# No optimization, because it would merge lines; counters are atomic because ranks have threads.
flags='--coverage -fprofile-update=atomic -DNDEBUG'
CMAKE_ARGS="-DCMAKE_BUILD_TYPE=Coverage '-DCMAKE_C_FLAGS=$flags' -DMPIDATA_TESTS=ON" \
    make --no-print-directory setup .venv/coverage.stamp
export PATH="$PWD/.venv/bin:$PATH"

status=0
ctest --test-dir "$(echo build/temp*/native-*)" --output-on-failure || status=$?
coverage run -m pytest "$@" || status=$?
coverage combine -q
coverage report --ignore-errors --sort cover
gcovr --filter c_api/src/ --filter launch/ --markdown - build
exit "$status"
