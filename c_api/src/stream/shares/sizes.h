/* Consequences of a trainer's batch size: room in the buffer, and for drawn samples that may be repeated. */
#ifndef MPIDATA_SIZES_H
#define MPIDATA_SIZES_H

#include "stream/state.h"

/* Set the samples of a batch, or those of all trainers together; the other one is 0. Before the first batch. */
int mpidata_batches_start_locked(mpidata_trainer *trainer, int64_t batch, int64_t total);

/* Grant later batches anew, and, unless each trainer has its own size, share from there on with those that train now. */
int mpidata_share_anew_locked(mpidata_trainer *trainer, int64_t from);

#endif
