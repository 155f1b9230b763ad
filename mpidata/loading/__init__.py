"""Messages between trainers and loaders: requests, parcels and their contents; and how batches are counted."""
