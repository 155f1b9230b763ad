"""One rank of a replica behaves differently. Arguments: the data, what the rank does, and which rank it is.

The data is a stream, files, or a loader with large or small batches. The rank leaves the loop at batch 10 by `break`
or `exit`, has a different batch size (`size`), is slow with each batch (`slow`), cannot save its state (`state`), or
waits for the others in a collective (`barrier`) that they do not call.
"""

import sys
import time
from pathlib import Path

import torch

from mpidata.run import deadlines

deadlines.SILENT_S = 15.0  # set before other modules read it
import mpidata  # noqa: E402

what, does, who = sys.argv[1], sys.argv[2], int(sys.argv[3])
place = mpidata.replica()
differs = place.rank == who
size = 4 if does == "size" and differs else 7


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 300

    def __getitem__(self, index):
        return torch.full((3000 if what == "large" else 1,), float(index))


class State:
    """A state too large for an eager message."""

    def state_dict(self):
        if does == "state" and differs:
            raise ValueError("cannot be saved")
        Path("begun").touch()
        return {"weights": torch.zeros(300_000)}

    def load_state_dict(self, state):
        pass


if what == "stream":
    batches = mpidata.MPIStreamDataset(size)
elif what == "files":
    batches = mpidata.FileDataset("*.npz", batch_size=size)
else:
    batches = mpidata.DataLoader(Rows(), batch_size=size, shuffle=True, share=True)
mpidata.register(state=State())
if does == "barrier":
    mpidata.init_process_group("gloo")
lead = 0
for epoch in range(1 if what == "stream" else 2):
    for number, _batch in enumerate(batches):
        if does == "slow":
            Path(f"number-{place.rank}").write_text(str(number))
            if differs:
                time.sleep(0.02)
                lead = max(lead, int(Path("number-0").read_text() or number) - number)
            continue
        if does in ("exit", "state"):
            time.sleep(0.05)
        if what == "stream" and number == 10 and not differs:
            batches.checkpoint()
        if does == "barrier" and number == 10 and differs:
            torch.distributed.barrier()
        if epoch == 0 and number == 10 and differs and does == "exit":
            while what == "stream" and not Path("begun").exists():  # until the first rank, which is ahead, has begun it
                time.sleep(0.01)
            sys.exit(0)
        if epoch == 0 and number == 10 and differs and does == "break":
            break
print(f"=> lead {lead}", flush=True)
