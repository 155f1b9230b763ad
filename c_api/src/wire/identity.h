/* The versions of mpidata and of MPI. A program that is linked to another MPI than libmpidata passes the linker, and would
 * crash or start N worlds of one rank. */
#ifndef MPIDATA_IDENTITY_H
#define MPIDATA_IDENTITY_H

#include <stddef.h>

enum { MPIDATA_MPI_NAME_MAX = 128 };

/* For example "0.2.0". Python only calls functions of its own version. */
const char *mpidata_version(void);

/* The MPI that libmpidata was built with, for example "Open MPI v5.0.11". */
const char *mpidata_built_with(void);

/* The first line of the text of MPI_Get_library_version, up to a comma, with single blanks. */
void mpidata_mpi_name(const char *text, char *name, size_t size);

/* Whether they are the same up to their first number. */
int mpidata_same_mpi(const char *one, const char *other);

/* Check that the MPI of this process is the one that libmpidata was built with. Uses no handle, whose size may differ; callable
 * before MPI_Init. */
int mpidata_check_identity(void);

#endif
