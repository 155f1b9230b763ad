"""Trainer that records its draws. 1 starts once its samples went to the others; 0 then asks for a checkpoint."""

import ctypes
import json
import os
import time
from pathlib import Path

from numpy_stream import stream

from mpidata.native import structures
from mpidata.native.library import check
from mpidata.run.folder import RunFolder
from mpidata.trainer.join import join
from mpidata.trainer.shares.grouping import Grouping

rank, told = int(os.environ["RANK"]), RunFolder(Path(os.environ["MPIDATA_RUN"])).idle_log


def handed_over() -> bool:
    return told.exists() and "its samples go to the trainers that draw" in told.read_text()


trainer = join()
trainer.start(Grouping(4))
figures = structures.Statistics()
while rank == 1 and (figures.windows or not handed_over()):
    check(trainer.library, trainer.library.mpidata_trainer_statistics(ctypes.byref(figures)))
    time.sleep(0.001)
drawn, asked = [], False
for batch in stream(4):
    drawn.append(list(zip(batch["simulation"].tolist(), batch["step"].tolist(), strict=True)))
    if rank == 0 and not asked and handed_over():
        check(trainer.library, trainer.library.mpidata_trainer_checkpoint())
        asked = True
Path(f"drawn-{rank}.json").write_text(json.dumps(drawn))
trainer.close()
