/* Deaths of ranks, where MPI tells of them: User-Level Failure Mitigation (ULFM) of Open MPI 5. Elsewhere a death ends the
 * job, and these functions never find one. */
#ifndef MPIDATA_FAILURE_H
#define MPIDATA_FAILURE_H

#include <mpi.h>

/* Acknowledge the deaths in an intracommunicator, so that receives from any source work again. dead: a flag per rank, set
 * for those found; newly: room for all ranks, gets the *n_newly ranks not flagged before. */
int mpidata_acknowledge_failures(MPI_Comm comm, char *dead, int *newly, int *n_newly);

/* Have all that is under way in a communicator, and all that is begun in it, end with an error on all its ranks. */
int mpidata_revoke(MPI_Comm comm);

#endif
