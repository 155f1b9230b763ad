"""Groups and loaders that are started while the job runs."""
