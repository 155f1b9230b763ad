/* Constants from the ranks of groups. A rank sends its part of them before its first piece of a try; all its later pieces
 * belong to them, until it sends the next ones. */
#ifndef MPIDATA_RECEIVED_CONSTANTS_H
#define MPIDATA_RECEIVED_CONSTANTS_H

#include "receive/incoming/state.h"

/* The assembly for a rank's part of constants; NULL: the part must be dropped. */
int mpidata_constants_begin(mpidata_incoming *in, mpidata_source *source, const mpidata_piece *piece,
                            mpidata_assembly **assembly);

/* Refuse a piece of a try whose constants the rank has not sent. */
int mpidata_constants_check(const mpidata_source *source, const mpidata_piece *piece);

/* All parts of constants are in place. *waiting: the *n steps that have come with them, in order, which may be whole
 * now; to be freed. */
int mpidata_constants_whole(mpidata_incoming *in, mpidata_assembly *assembly, mpidata_assembly ***waiting, int64_t *n);

/* This rank sends nothing more with the constants that it has sent last. */
void mpidata_let_go_of_constants(mpidata_incoming *in, mpidata_source *source);

/* All samples have come: release the constants of all ranks, and drop later ones. */
void mpidata_end_constants_locked(mpidata_incoming *in);

#endif
