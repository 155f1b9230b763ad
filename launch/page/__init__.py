"""The page about a job that `mpidata watch` and, on a terminal, `mpidata run` show."""
