/* State for a trainer that joins a stream, and samples that the others leave to it. */
#ifndef MPIDATA_JOINING_H
#define MPIDATA_JOINING_H

#include "stream/state.h"

/* The samples that the trainers have trained on, and the known numbers of steps of simulations: *n numbers, to be freed.
 * Samples that this one has received and not drawn are not included. All drawn samples were trained on. */
int mpidata_pack_trained_locked(const mpidata_trainer *trainer, int64_t **numbers, int64_t *n);

/* Enter them into the ledger of a trainer that has had no sample yet. */
int mpidata_take_trained_locked(mpidata_trainer *trainer, const int64_t *numbers, int64_t n);

/* Drop samples that have come here, were never drawn, and now belong to another trainer. */
int mpidata_drop_others_locked(mpidata_trainer *trainer);

#endif
