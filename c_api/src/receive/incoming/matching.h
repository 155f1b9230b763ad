/* Which message is taken next: those of one source in their order, so that one waits while the one before it is under way, and
 * training samples only while there is room for them. What is pending (mpidata_incoming.pending), and the memory of the
 * messages under way, are this file's. */
#ifndef MPIDATA_MATCHING_H
#define MPIDATA_MATCHING_H

#include "receive/incoming/state.h"

/* Take messages of one stream until there are none, or too much is under way; *did becomes 1 if there was anything. */
int mpidata_match_messages(mpidata_incoming *in, mpidata_inlet *inlet, int validation, int *did);

/* Take the pieces that have come, and begin with what waits behind them; *did likewise. */
int mpidata_advance_pending(mpidata_incoming *in, int *did);

#endif
