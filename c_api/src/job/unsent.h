/* Copies of messages that have not left: MPI reads them until then, perhaps long after the call that sends them. */
#ifndef MPIDATA_UNSENT_H
#define MPIDATA_UNSENT_H

#include <mpi.h>
#include <stddef.h>

typedef struct mpidata_unsent mpidata_unsent;

/* Start to send a copy, which becomes the first one in the list; never waits. On MPIDATA_ERR_MEMORY the caller must set the
 * sentence. */
int mpidata_unsent_send(mpidata_unsent **unsent, const void *message, size_t bytes, int rank, int tag, MPI_Comm comm);

/* Free those that have left, or never will; MPIDATA_ERR_DIED: the receiver of some has died. */
int mpidata_unsent_test(mpidata_unsent **unsent);

#endif
