/* Blocks that come in separate messages, after the header that announces them: each is received into its place in the slot.
 * This file owns their receives (mpidata_incoming.receives). */
#ifndef MPIDATA_BLOCKS_H
#define MPIDATA_BLOCKS_H

#include "receive/incoming/state.h"

/* Start to receive the next block that a source has announced, or to drop it. */
int mpidata_receive_block(mpidata_incoming *in, mpidata_source *source, MPI_Message *message, const MPI_Status *status);

/* Process those that have ended; *did becomes 1 if there were any. */
int mpidata_complete_blocks(mpidata_incoming *in, int *did);

#endif
