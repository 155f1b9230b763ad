"""What was lost by deaths, and why: groups and loaders, trainers."""
