#!/bin/sh
# run.sh RANKS program ...: makes the mesh and its parts, then starts the program in a copy of this folder. Debian's
# OpenFOAM is built with Debian's Open MPI.
export WM_PROJECT_DIR="${WM_PROJECT_DIR:-/usr/share/openfoam}"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
blockMesh >log && decomposePar >>log || exit 1
ranks=$1 && shift
exec "$(command -v mpirun.openmpi || echo mpirun)" --oversubscribe -n "$ranks" "$@" >>log
