#!/bin/sh
# Runs mypy --strict on the packages as installed, where launch/ is mpidata.launch; mypy has no option for that.
# Usage: typecheck.sh <python>, from the top folder.
set -eu
types=build/types
rm -rf "$types"
mkdir -p "$types/mpidata"
for entry in mpidata/*.py mpidata/py.typed mpidata/*/__init__.py; do
    [ "$entry" = mpidata/__init__.py ] || entry=${entry%/__init__.py}
    ln -sfn "../../../${entry}" "$types/mpidata/"
done
ln -s ../../../launch ../../../slurm_templates "$types/mpidata/"
cd "$types"
exec "$1" -m mypy --strict --config-file ../../pyproject.toml --cache-dir ../mypy_cache -p mpidata
