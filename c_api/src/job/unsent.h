/* Copies of messages that have not left: MPI reads them until then, which may be long after the call that sends them. */
#ifndef MPIDATA_UNSENT_H
#define MPIDATA_UNSENT_H

#include <mpi.h>
#include <stddef.h>

typedef struct mpidata_unsent mpidata_unsent;

/* Begin to send a copy, which becomes the first one in the list; never waits. MPIDATA_ERR_MEMORY: without a
 * sentence, which is the caller's. */
int mpidata_unsent_send(mpidata_unsent **unsent, const void *message, size_t bytes, int rank, int tag, MPI_Comm comm);

/* Free those that have left, or never will; MPIDATA_ERR_DIED: some were to go to a rank that has died. */
int mpidata_unsent_test(mpidata_unsent **unsent);

#endif
