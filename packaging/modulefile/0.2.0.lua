-- A modulefile for Lmod. Install it as mpidata/0.2.0.lua next to the modules of the MPI that libmpidata was built with.
local root = "/opt/mpidata/0.2.0" -- the prefix of `cmake --install`

help([[Streams running MPI simulations into PyTorch training, inside one MPI job.
In your Python environment, pip install the sdist of mpidata, which then uses this library. Then run mpidata doctor --test]])
whatis("Name: mpidata")
whatis("Version: 0.2.0")

-- depends_on("openmpi/5.0") -- the MPI that libmpidata was built with
prepend_path("CMAKE_PREFIX_PATH", root)
prepend_path("PKG_CONFIG_PATH", pathJoin(root, "lib/pkgconfig"))
setenv("MPIDATA_LIBRARY", pathJoin(root, "lib/libmpidata.so"))
