/* A mate of a trainer: a further rank of its replica, which gets its batches from the trainer. Called by Python
 * (mpidata/native/library.py), which itself communicates with the trainer. Not installed. */
#ifndef MPIDATA_MATE_H
#define MPIDATA_MATE_H

#include <mpi.h>

/* Join the job as a mate. Collective over world; blocks without spinning. */
int mpidata_mate_open(MPI_Fint world);

/* Check whether the job continues. MPIDATA_ERR_DIED if the scheduler has ended it, or has died. Does not block. */
int mpidata_mate_look(void);

/* A rank has died without which this one cannot continue: sleep until this process is ended with the job, or end it if the
 * scheduler has died. Does not return. */
void mpidata_mate_await_end(void);

/* Leave the job in order. Does not block. */
int mpidata_mate_close(void);

#endif
