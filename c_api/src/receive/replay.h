/* Replay of a run: samples enter the buffer in the order of the journal, and those that come earlier are held outside the
 * capacity. A group waits if as many of its samples are held as may be in flight. */
#ifndef MPIDATA_REPLAY_H
#define MPIDATA_REPLAY_H

#include "receive/source.h"
#include "stream/state.h"

/* As MPI_Improbe for training samples from any source, but without those of groups that must wait. */
int mpidata_replay_probe(mpidata_trainer *trainer, const mpidata_inlet *inlet, int *here, MPI_Message *message,
                         MPI_Status *status);

/* Hand over the next samples; over: no more samples come. *n: number of journal entries that were passed. */
int mpidata_replay_fill_locked(mpidata_trainer *trainer, int over, int64_t *n);

#endif
