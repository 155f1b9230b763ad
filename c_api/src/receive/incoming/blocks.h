/* Blocks that come in messages of their own, after the header that announces them: each is received into its place in the
 * slot. Their receives (mpidata_incoming.receives) are this file's. */
#ifndef MPIDATA_BLOCKS_H
#define MPIDATA_BLOCKS_H

#include "receive/incoming/state.h"

/* Begin to receive the next one that a source has announced, or to drop it. */
int mpidata_receive_block(mpidata_incoming *in, mpidata_source *source, MPI_Message *message, const MPI_Status *status);

/* Take note of those that have ended; *did becomes 1 if there were any. */
int mpidata_complete_blocks(mpidata_incoming *in, int *did);

#endif
