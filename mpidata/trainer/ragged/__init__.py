"""Other ways than packing in which samples with lengths of their own share a batch."""
