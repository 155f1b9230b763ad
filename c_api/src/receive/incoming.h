/* Receiving from the solvers, from messages to whole samples. Messages are matched first and received second, so that
 * nothing is preposted and the blocks land at their places in a slot without a copy. No receive is waited for: a sender
 * that computes, hangs or dies within a message does not delay those of others.
 * Only for the receive thread; functions take the trainer's lock if they need it. */
#ifndef MPIDATA_INCOMING_H
#define MPIDATA_INCOMING_H

#include "receive/incoming/deaths.h"
#include "receive/incoming/inlets.h"

int mpidata_incoming_open(mpidata_incoming *in, mpidata_trainer *trainer);
void mpidata_incoming_close(mpidata_incoming *in);

/* Start to take validation samples; *did becomes 1 if there was work. */
int mpidata_incoming_validation(mpidata_incoming *in, int *did);

/* Take training samples, and complete receives in flight; *did likewise. */
int mpidata_incoming_take(mpidata_incoming *in, int *did);

#endif
