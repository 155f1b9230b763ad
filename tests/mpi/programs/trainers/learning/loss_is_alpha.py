"""Trainer: passes the parameter alpha of each sample as its loss, and writes the alpha of each simulation."""

import numpy as np
from numpy_stream import stream

from mpidata.trainer.join import join

batches, seen = stream(2), {}
for batch in batches:
    alpha = batch["parameters"][:, 0]
    assert (batch["u"] == (alpha + batch["step"]).astype("float32").reshape(2, 1, 1)).all()
    seen |= dict(zip(batch["simulation"].tolist(), alpha.tolist(), strict=True))
    join().losses.take(batch, alpha)
np.save("seen.npy", np.array(sorted(seen.items())))
