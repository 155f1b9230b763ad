/* Constants of the present simulation: kept by the sender until the simulation ends, and sent to each trainer that gets
 * a sample of it, before that. MPI keeps the order of messages. */
#ifndef MPIDATA_KEPT_CONSTANTS_H
#define MPIDATA_KEPT_CONSTANTS_H

#include "solver/sender.h"

/* Before they are staged or sent: those of an earlier simulation are forgotten. Blocks while these are under way. */
int mpidata_kept_constants_begin(mpidata_sender *sender);

/* Before a commit of a step: send them to those of its trainers that lack them. Blocks as mpidata_kept_constants_begin does. */
int mpidata_kept_constants_send(mpidata_sender *sender, int64_t simulation, int64_t step, int validation,
                                const double *parameters);

#endif
