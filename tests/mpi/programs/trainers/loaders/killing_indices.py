"""Trainer on a DataLoader of 61 numbers: prints the batches of two epochs. Arguments: indices that kill loaders."""

import json
import os
import signal
import sys

import mpidata


class Numbers:
    def __init__(self, bad):
        self.bad = bad

    def __len__(self):
        return 61

    def __getitem__(self, index):
        if index in self.bad:
            os.kill(os.getpid(), signal.SIGKILL)
        return index


if __name__ == "__main__":
    loader = mpidata.DataLoader(Numbers({int(index) for index in sys.argv[1:]}), batch_size=4)
    for _ in range(2):
        print("=>", json.dumps([batch.tolist() for batch in loader]), flush=True)
