/* What follows for a trainer from the size of its batches: room in the buffer, and for drawn samples that may be repeated. */
#ifndef MPIDATA_SIZES_H
#define MPIDATA_SIZES_H

#include "stream/state.h"

/* Batches have so many samples, or all of the trainers together, of which the other one is 0. Before the first batch. */
int mpidata_batches_start_locked(mpidata_trainer *trainer, int64_t batch, int64_t total);

/* Grant anew what is behind this batch, and, unless each has its own size, share from there on with those that train now. */
int mpidata_share_anew_locked(mpidata_trainer *trainer, int64_t from);

#endif
