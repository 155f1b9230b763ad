/* Pieces of samples: each is checked, finds the sample that it is of, or begins one, and what travels along goes to its
 * place. The samples that are being assembled (mpidata_incoming.assemblies) are this file's; it takes the trainer's lock. */
#ifndef MPIDATA_PIECES_H
#define MPIDATA_PIECES_H

#include "receive/incoming/state.h"

/* Take the pieces of a message. Of the last one, blocks may follow in messages of their own: source->blocks. */
int mpidata_take_pieces(mpidata_incoming *in, mpidata_source *source, const char *message, size_t bytes);

/* A block has come: the sample may be whole with it. */
int mpidata_finish_if_whole(mpidata_incoming *in, mpidata_assembly *assembly);

/* Say in the last error, of this status, who has sent what is wrong; returns the status. */
int mpidata_name_sender(const mpidata_incoming *in, const mpidata_source *source, int status);

#endif
