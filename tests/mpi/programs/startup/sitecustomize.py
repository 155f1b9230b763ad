"""Python's startup code in the tests' jobs.

Once torch is imported, the garbage collector scans 170,000 objects. That takes a fifth of a short script's time at its
end, so they are frozen there, and a tenth during the import, so higher thresholds make it less frequent.
"""

import atexit
import gc

import torch_late

atexit.register(gc.freeze)
gc.set_threshold(20_000, 50, 100)
torch_late.put_off()
