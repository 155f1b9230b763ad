/* What a trainer that joins a stream is to know, and what the others leave to it. */
#ifndef MPIDATA_JOINING_H
#define MPIDATA_JOINING_H

#include "stream/state.h"

/* What the trainers have trained on, and the steps of simulations that are known: numbers, to be freed, *n of them. What this
 * one has received and not drawn is none of it. All that was drawn was trained on. */
int mpidata_pack_trained_locked(const mpidata_trainer *trainer, int64_t **numbers, int64_t *n);

/* Enter them into the ledger of one that has had no sample yet. */
int mpidata_take_trained_locked(mpidata_trainer *trainer, const int64_t *numbers, int64_t n);

/* Drop the samples that have come here, were never drawn, and are of another trainer now. */
int mpidata_drop_others_locked(mpidata_trainer *trainer);

#endif
