"""What a trainer's script uses: the dataset, its batches, and its place in the job."""
