"""Trainer: reports values of each batch, one name twice, and a picture of the first batch."""

import mpidata

stream = mpidata.MPIStreamDataset(batch_size=2)
for batch, _ in enumerate(stream, start=1):
    stream.report(number=batch, half=batch / 2)
    stream.report(number=-batch)
    if batch == 1:
        stream.picture("batches", [[0.0, 1.0]])
