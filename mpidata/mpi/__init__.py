"""The MPIs of this machine: their names and versions, their launchers and networks."""
