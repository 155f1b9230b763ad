"""What an import of mpidata loads, and that the library stays loaded."""

import subprocess
import sys

from mpidata.native import loading


def test_library_stays_loaded_after_dlclose():
    """MPI_Finalize calls back into the library after a plugin that used it may have been unloaded."""
    script = (
        "import _ctypes, ctypes, pathlib, sys\n"
        "_ctypes.dlclose(ctypes.CDLL(sys.argv[1])._handle)\n"
        "print(sys.argv[1] in pathlib.Path('/proc/self/maps').read_text())\n"
    )
    done = subprocess.run([sys.executable, "-c", script, loading.find().resolve()], stdout=subprocess.PIPE, text=True)
    assert done.stdout == "True\n"


def test_import_brings_in_neither_mpi_nor_torch():
    code = "import sys, mpidata; assert not {'mpi4py', 'torch', 'numpy'} & set(sys.modules); print(dir(mpidata))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for name in ("MPIStreamDataset", "init_process_group", "solver", "__version__"):
        assert name in output


def test_lazy_names_are_imported_on_access():
    code = (
        "import mpidata; from mpidata import MPIStreamDataset as D; assert D is mpidata.MPIStreamDataset; "
        "mpidata.solver.simulations; mpidata.init_process_group; import sys; assert 'mpi4py' not in sys.modules\n"
        "try: mpidata.nothing\nexcept AttributeError as error: print(error)"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "module 'mpidata' has no attribute 'nothing'"
