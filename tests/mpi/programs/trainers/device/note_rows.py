"""Trainer on a stand-in for a device: records the rows of two epochs of part files, with a DataLoader beside each.

Argument, in JSON: `parts`, the pattern; `rows`, their number.
"""

import json
import os
import sys
from pathlib import Path

import mpidata

sys.path.insert(0, str(Path(__file__).parents[4] / "unit"))
from fake_device import FakeDevice  # noqa: E402

import mpidata.device.prefetch as prefetch  # noqa: E402

options = json.loads(sys.argv[1])
device = FakeDevice(pins=True)
prefetch.choose_device = lambda asked, what, pin_memory: device
files = mpidata.FileDataset(options["parts"], batch_size=5, device="cuda", device_prefetch=2)
loader = mpidata.DataLoader(range(options["rows"]), batch_size=5, shuffle=True, share=True, device="cuda")
notes = {"files": [], "loader": []}
for _ in range(2):
    of_files, of_loader = [], []
    for batch in files:
        device.step(batch, lambda read, of=of_files: of.extend(read["row"].tolist()))
    for rows in loader:
        device.step({"rows": rows}, lambda read, of=of_loader: of.extend(read["rows"].tolist()))
    device.finish()
    notes["files"].append(of_files)
    notes["loader"].append(of_loader)
Path(f"rows-{os.environ['RANK']}.json").write_text(json.dumps(notes))
