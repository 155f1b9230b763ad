"""The epochs of datasets on loaders: whose places are whose, where one is, and how it goes on from there."""
