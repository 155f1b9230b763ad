"""The part of mpidata that a training script uses: the dataset, its batches, and its place in the job."""
