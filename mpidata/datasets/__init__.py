"""Datasets on loaders, as a training script holds them: DataLoader and FileDataset."""
