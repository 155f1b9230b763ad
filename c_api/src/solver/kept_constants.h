/* Constants of the current simulation: kept by the sender until the simulation ends, and sent to each trainer before its
 * first sample of it. MPI keeps the order of messages. */
#ifndef MPIDATA_KEPT_CONSTANTS_H
#define MPIDATA_KEPT_CONSTANTS_H

#include "solver/sender.h"

/* Before they are staged or sent: forget those of an earlier simulation. Blocks while these are in flight. */
int mpidata_kept_constants_begin(mpidata_sender *sender);

/* Before a commit of a step: send them to those of its trainers that lack them. Blocks as mpidata_kept_constants_begin does. */
int mpidata_kept_constants_send(mpidata_sender *sender, int64_t simulation, int64_t step, int validation,
                                const double *parameters);

#endif
