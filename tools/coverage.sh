#!/bin/sh
# Prints which lines and branches of the Python and C code the tests run: coverage.sh [<arguments of pytest> ...]
# Works in build/coverage, a copy of this clone with an environment of its own and a library built with --coverage, so
# that the usual build is untouched. A process that is killed, or ends by _exit in C, leaves no figures.
# Ends with the exit status of the tests.
set -eu
cd "$(dirname "$0")/.."
copy=build/coverage
mkdir -p "$copy"
find "$copy" -mindepth 1 -maxdepth 1 ! -name .venv -exec rm -rf {} +
tar -c --exclude='./.venv*' --exclude=./build . | tar -x -C "$copy"
cd "$copy"

# Without optimization, which would merge lines; ranks have threads, so counters are updated atomically.
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
