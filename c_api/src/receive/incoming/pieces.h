/* Pieces of samples: each is checked and assigned to its sample, or starts one; blocks that travel along are copied there.
 * This file owns the samples that are being assembled (mpidata_incoming.assemblies); it takes the trainer's lock. */
#ifndef MPIDATA_PIECES_H
#define MPIDATA_PIECES_H

#include "receive/incoming/state.h"

/* Take the pieces of a message. Blocks of the last one may follow in separate messages: source->blocks. */
int mpidata_take_pieces(mpidata_incoming *in, mpidata_source *source, const char *message, size_t bytes);

/* A block has come: the sample may be whole with it. */
int mpidata_finish_if_whole(mpidata_incoming *in, mpidata_assembly *assembly);

/* Add the sender to the last error, of this status; returns the status. */
int mpidata_name_sender(const mpidata_incoming *in, const mpidata_source *source, int status);

#endif
