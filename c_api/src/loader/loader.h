/* A loader of the job: a rank that reads and prepares what the trainers ask it for. Not installed. One thread. Functions
 * return the codes of mpidata.h. */
#ifndef MPIDATA_LOADER_H
#define MPIDATA_LOADER_H

#include <mpi.h>

/* Join the job as a loader and tell the scheduler that it takes requests. Collective over world; blocks without spinning. */
int mpidata_loader_open(MPI_Fint world);

/* Sleep, for so long at most, until this loader is to leave: MPIDATA_END; else MPIDATA_ERR_AGAIN. One that was given up, or
 * whose scheduler has died, does not return. */
int mpidata_loader_wait(double timeout_s);

/* Leave the job in order. */
int mpidata_loader_close(void);

#endif
