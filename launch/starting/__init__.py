"""Starting a job: from the command line, by the launcher of the MPI, or by hand; on which hosts."""
