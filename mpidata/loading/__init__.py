"""What trainers and loaders say to each other: requests, parcels, and what is in them; and how batches are counted."""
