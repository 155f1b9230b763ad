/* The questions of a rank of a carried program, each in one of the places that it shares with its carrier. */
#ifndef MPIDATA_INFER_BY_MEMORY_H
#define MPIDATA_INFER_BY_MEMORY_H

#include "carried/channel.h"
#include "mpidata.h"

/* As `ask` and `answer` of calls/transport.h. */
int mpidata_carried_infer_begin(mpidata_channel *channel, const mpidata_array *in, int n_in, const mpidata_array *out, int n_out,
                        int64_t *version, int64_t *question);
int mpidata_carried_infer_wait(mpidata_channel *channel, int64_t question);

/* Wait for all open questions, so that their arrays are no longer lent. */
int mpidata_carried_infer_settle(mpidata_channel *channel);

/* Forget all. */
void mpidata_carried_infer_close(void);

#endif
