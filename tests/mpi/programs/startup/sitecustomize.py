"""What Python does first in jobs of the tests.

An interpreter that has imported torch looks for garbage among 170,000 objects: a fifth of what a short script costs at
its end, where it takes them all for needed here, and a tenth during the import, so it does that less often.
"""

import atexit
import gc

import torch_late

atexit.register(gc.freeze)
gc.set_threshold(20_000, 50, 100)
torch_late.put_off()
