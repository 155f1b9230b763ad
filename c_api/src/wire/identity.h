/* Which mpidata, and which MPI this is. A program that is linked to another MPI than libmpidata gets past the linker, and would crash or start
 * N worlds of one rank. */
#ifndef MPIDATA_IDENTITY_H
#define MPIDATA_IDENTITY_H

#include <stddef.h>

enum { MPIDATA_MPI_NAME_MAX = 128 };

/* "0.1.0" say. Python calls functions of its own version only. */
const char *mpidata_version(void);

/* The MPI that libmpidata was built with, "Open MPI v5.0.11" say. */
const char *mpidata_built_with(void);

/* The first line of what MPI_Get_library_version gives, up to a comma, blanks made single. */
void mpidata_mpi_name(const char *text, char *name, size_t size);

/* Are they the same up to their first number? */
int mpidata_same_mpi(const char *one, const char *other);

/* Is the MPI of this process the one that libmpidata was built with? Uses no handle, whose size may differ; callable before
 * MPI_Init. */
int mpidata_check_identity(void);

#endif
