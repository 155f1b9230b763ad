#!/bin/sh
trap 'trap "" TERM; kill 0' EXIT
sleep 317 &
sleep 0.5
python - <<END
import numpy, os
for i in range(10):
    numpy.save("new", numpy.full((4, 6), float(i), "f4"))
    os.rename("new.npy", f"u_{i}.npy")
END
