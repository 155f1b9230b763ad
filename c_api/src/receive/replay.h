/* A run that is replayed: samples enter the buffer in the order of the journal, and those that come earlier are held outside
 * the capacity. A group of which as many are held as may be under way waits. */
#ifndef MPIDATA_REPLAY_H
#define MPIDATA_REPLAY_H

#include "receive/source.h"
#include "stream/state.h"

/* As MPI_Improbe for training samples from any source, but of a group that is to wait nothing is taken. */
int mpidata_replay_probe(mpidata_trainer *trainer, const mpidata_inlet *inlet, int *here, MPI_Message *message,
                         MPI_Status *status);

/* Hand over what is next; over: no more samples come. *n: how many entries of the journal were passed. */
int mpidata_replay_fill_locked(mpidata_trainer *trainer, int over, int64_t *n);

#endif
