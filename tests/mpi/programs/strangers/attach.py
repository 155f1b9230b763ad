"""A process that the job did not start attaches to the carrier. Arguments: LIBRARY TIMES."""

import ctypes
import sys

library = ctypes.CDLL(sys.argv[1])
library.mpidata_last_error.restype = ctypes.c_char_p
for _ in range(int(sys.argv[2])):
    print(library.mpidata_attach(), library.mpidata_last_error().decode())
