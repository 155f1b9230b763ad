"""Statistics of the fields of a stream, and what normalizes with them."""
