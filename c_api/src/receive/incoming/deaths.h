/* Dropping of data after groups or loaders die, are lost, or leave, and after simulations are cancelled. Messages of a dead
 * rank in flight are dropped silently: the scheduler learns of its death, and handles it. */
#ifndef MPIDATA_DEATHS_H
#define MPIDATA_DEATHS_H

#include "receive/incoming/state.h"

/* A death is not an error here. */
static inline int mpidata_forgive_death(int status) { return status == MPIDATA_ERR_DIED ? MPIDATA_SUCCESS : status; }

/* After MPIDATA_ERR_DIED: find who has died; an error if it was the scheduler. */
int mpidata_incoming_note_deaths(mpidata_inlet *inlet);

/* A group, or loader, is lost. */
int mpidata_incoming_lose(mpidata_incoming *in, int role, int number);

/* A simulation is cancelled; group: the one that runs it, or has `closed` it, -1: none. */
int mpidata_incoming_cancel(mpidata_incoming *in, int64_t simulation, int group, int closed);

/* A group, or loader, has left in order. */
void mpidata_incoming_gone(mpidata_incoming *in, int role, int number);

/* Close the inlets of those that are lost or have left. */
int mpidata_free_gone(mpidata_incoming *in);

#endif
