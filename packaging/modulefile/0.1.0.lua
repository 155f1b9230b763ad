-- A modulefile for Lmod, as mpidata/0.1.0.lua beside the modules of the MPI that libmpidata was built with.
local root = "/opt/mpidata/0.1.0" -- the prefix of `cmake --install`

help([[Streams running MPI simulations into PyTorch training, inside one MPI job.
In an environment of Python of yours: pip install mpidata, which goes on top of this library. Then: mpidata doctor --test]])
whatis("Name: mpidata")
whatis("Version: 0.1.0")

-- depends_on("openmpi/5.0") -- the MPI that libmpidata was built with
prepend_path("CMAKE_PREFIX_PATH", root)
prepend_path("PKG_CONFIG_PATH", pathJoin(root, "lib/pkgconfig"))
setenv("MPIDATA_LIBRARY", pathJoin(root, "lib/libmpidata.so"))
