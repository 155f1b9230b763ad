/* What comes from the solvers, from messages to whole samples. Messages are matched first and received second, so that
 * nothing is preposted and the blocks land at their places in a slot without a copy. No receive is waited for: a sender
 * that computes, hangs or dies in the middle of a message holds up nobody else's.
 * The receive thread's own; functions take the trainer's lock where they need it. */
#ifndef MPIDATA_INCOMING_H
#define MPIDATA_INCOMING_H

#include "receive/receives.h"
#include "receive/source.h"
#include "stream/state.h"

typedef struct {
    mpidata_trainer *trainer;
    mpidata_inlet **inlets;
    int n_inlets;
    mpidata_assemblies assemblies;
    mpidata_arena arena; /* of the memory for messages of pieces, MPIDATA_BUNDLE_MAX each; longer ones have their own */
    char *spare;      /* such memory that is free; each begins with the address of the next */
    mpidata_receives receives; /* of blocks */
    mpidata_source **pending; /* with pieces under way, or queued messages; the longest first */
    int n_pending, pending_allocated;
    int parcels_under_way;
    int64_t simulation, step; /* of the last piece, for error messages; -1: none */
} mpidata_incoming;

int mpidata_incoming_open(mpidata_incoming *in, mpidata_trainer *trainer);
void mpidata_incoming_close(mpidata_incoming *in);

/* Is anything under way? */
int mpidata_incoming_busy(const mpidata_incoming *in);

/* Listen to a spawned group or loader, too. */
int mpidata_incoming_add(mpidata_incoming *in, MPI_Comm comm, int role, int number);

/* Begin to take validation samples; *did becomes 1 if there was anything. */
int mpidata_incoming_validation(mpidata_incoming *in, int *did);

/* Take training samples, and complete what is under way; *did likewise. */
int mpidata_incoming_take(mpidata_incoming *in, int *did);

/* After MPIDATA_ERR_DIED: find who has died; an error where it was the scheduler. */
int mpidata_incoming_note_deaths(mpidata_inlet *inlet);

/* A group, or loader, is lost. */
int mpidata_incoming_lose(mpidata_incoming *in, int role, int number);

/* A group, or loader, has left in order. */
void mpidata_incoming_gone(mpidata_incoming *in, int role, int number);

#endif
