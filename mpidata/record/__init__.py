"""Records: the samples that trainers receive, in HDF5 files, and the dataset that reads them back."""
