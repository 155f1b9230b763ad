"""The consequences of deaths: lost groups, loaders and trainers, and the causes."""
