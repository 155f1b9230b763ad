#!/bin/sh
# Makes an environment with a different MPI from .venv's, and builds mpidata for it: make-mpi.sh <mpi> <folder> <python>
# <mpi>: mpich (5, from PyPI), debian-mpich (4.0) or debian-openmpi (4.1). All other packages come from the environment
# of <python>. <folder> is absolute, without blanks. Run it from the top folder. If packages are missing, it fails
# with a message.
set -eu
mpi=$1
venv=$2
python=$3
here=$(dirname "$0")

case $mpi in
mpich) from_pypi='mpich>=5,<6' mpicc="$venv/bin/mpicc" ;;
debian-mpich) from_pypi='' mpicc=mpicc.mpich ;;
debian-openmpi) from_pypi='' mpicc=mpicc.openmpi ;;
*) echo "There is no MPI '$mpi' here: mpich, debian-mpich or debian-openmpi." >&2 && exit 1 ;;
esac
if [ -z "$from_pypi" ] && ! command -v "$mpicc" >/dev/null; then
    echo "There is no $mpicc. On Debian: sh tools/system-packages.sh mpicc.mpich=libmpich-dev mpicc.openmpi=libopenmpi-dev" >&2
    exit 1
fi

sh "$here/make-venv.sh" "$python" "$venv"
pip="$venv/bin/python -m pip --disable-pip-version-check"
if [ ! -e "$venv/packages.stamp" ] || [ -n "$(find "$0" constraints.txt -newer "$venv/packages.stamp")" ]; then
    site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    "$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$site/shared.pth"
    # Installed here even if the shared folder has them, because they find the MPI beside them.
    # shellcheck disable=SC2086 # words
    $pip install -q --ignore-installed -c constraints.txt setuptools cmake ninja $from_pypi
    $pip install -q --ignore-installed --no-deps -c constraints.txt mpi4py
    if [ "$mpi" = debian-mpich ]; then
        # mpi4py's wheel needs libmpi.so.12, MPICH's name of its library; Debian's library has a different name.
        cc -shared -o "$venv/lib/libmpi.so.12" -Wl,-soname,libmpi.so.12 -Wl,--no-as-needed -lmpich
    fi
    touch "$venv/packages.stamp"
fi
export MPICC="$mpicc"
export PATH="$venv/bin:$PATH"
$pip install -q --force-reinstall --no-deps --no-build-isolation .
