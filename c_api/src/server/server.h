/* A parameter server of the job: a rank that stores a part of the weights. Called by Python (mpidata/native/library.py), which
 * itself communicates with the trainers. Not installed. */
#ifndef MPIDATA_SERVER_H
#define MPIDATA_SERVER_H

#include <mpi.h>

/* Join the job as a server. Collective over world; blocks without spinning. */
int mpidata_server_open(MPI_Fint world);

/* Another rank has died: sleep until this process is ended with the job, or end it if the scheduler has died. Does not
 * return. */
void mpidata_server_await_end(void);

/* Leave the job in order. Does not block. */
int mpidata_server_close(void);

#endif
