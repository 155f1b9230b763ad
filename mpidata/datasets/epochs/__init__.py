"""Epochs of datasets on loaders: which places each trainer has, and the position from which to continue."""
