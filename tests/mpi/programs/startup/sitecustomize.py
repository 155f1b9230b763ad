"""What Python does first in jobs of the tests.

At its end an interpreter that has imported torch looks for garbage among 170,000 objects, which is a fifth of what a
short script costs. So there it takes them all for needed.
"""

import atexit
import gc

atexit.register(gc.freeze)
