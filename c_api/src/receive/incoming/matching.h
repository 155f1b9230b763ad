/* Choice of the next message: those of one source in order, so that one waits while the previous one is in flight, and training
 * samples only while there is room. This file owns the pending sources (mpidata_incoming.pending), and the memory of the
 * messages in flight. */
#ifndef MPIDATA_MATCHING_H
#define MPIDATA_MATCHING_H

#include "receive/incoming/state.h"

/* Take messages of one stream until there are none, or too much is in flight; *did becomes 1 if there was work. */
int mpidata_match_messages(mpidata_incoming *in, mpidata_inlet *inlet, int validation, int *did);

/* Take the pieces that have come, and start with the messages that wait behind them; *did likewise. */
int mpidata_advance_pending(mpidata_incoming *in, int *did);

#endif
