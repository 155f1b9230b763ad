/* Deaths of ranks, if MPI reports them: User-Level Failure Mitigation (ULFM) of Open MPI 5. Otherwise a death ends the job,
 * and these functions never find one. */
#ifndef MPIDATA_FAILURE_H
#define MPIDATA_FAILURE_H

#include <mpi.h>

/* Acknowledge the deaths in an intracommunicator, so that receives from any source work again. dead: a flag per rank, set for
 * those found; newly: room for all ranks, gets the *n_newly ranks that were not flagged before. */
int mpidata_acknowledge_failures(MPI_Comm comm, char *dead, int *newly, int *n_newly);

/* Let all present and later operations in a communicator end with an error on all its ranks. */
int mpidata_revoke(MPI_Comm comm);

#endif
