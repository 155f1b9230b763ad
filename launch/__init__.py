"""How a job starts, is watched and ends: on one machine by `mpidata run`, or by hand under a launcher."""
