"""Statistics of the fields of a stream, and a module that normalizes with them."""
