"""The JSON documents of a run folder, checked for the types of what is used of them."""
