/* Constants of the present simulation: kept by the sender until the simulation ends, and sent to each trainer that gets
 * a sample of it, before that. MPI keeps the order of messages. */
#ifndef MPIDATA_SENDER_CONSTANTS_H
#define MPIDATA_SENDER_CONSTANTS_H

#include "solver/sender.h"

/* The number of their piece. */
static inline int mpidata_kept_constants_piece(const mpidata_sender *sender) { return sender->n_pieces + 1; }

int mpidata_kept_constants_open(mpidata_sender *sender);

/* Before they are staged or sent: those of an earlier simulation are forgotten. Blocks while these are under way. */
int mpidata_kept_constants_begin(mpidata_sender *sender);

/* Send them to those of these trainers that lack them. The tag is that of the simulation. Does not block otherwise. */
int mpidata_kept_constants_send(mpidata_sender *sender, int64_t simulation, const double *parameters,
                                const int *trainers, int n);

#endif
