/* State of receives from the solvers, only for the receive thread. Each part is changed by only one file of this folder. */
#ifndef MPIDATA_INCOMING_STATE_H
#define MPIDATA_INCOMING_STATE_H

#include "containers/message_memory.h"
#include "receive/receives.h"
#include "receive/source.h"
#include "stream/state.h"

enum { MPIDATA_READY_MAX = 64 };

typedef struct {
    mpidata_trainer *trainer;
    /* inlets.c; each source within them: matching.c */
    mpidata_inlet **inlets;
    int n_inlets;
    int drains; /* whether a source is drained: deaths.c */
    /* pieces.c; deaths.c drops those of a lost group */
    mpidata_assemblies assemblies;
    mpidata_assembly *ready[MPIDATA_READY_MAX]; /* whole steps of the message that is being taken */
    int n_ready;
    int64_t simulation, step; /* of the last piece, for error messages; -1: none */
    /* blocks.c */
    mpidata_receives receives;
    /* matching.c */
    mpidata_message_memory memory;
    mpidata_source **pending; /* with pieces in flight, or waiting messages; the longest pending first */
    int n_pending;
    int64_t pending_allocated;
    /* receive/parcels.c, and receive/answering/relay.c */
    int parcels_under_way, questions_under_way;
    /* receive/answering/publishing.c */
    int answers_under_way;
} mpidata_incoming;

/* Whether anything is in flight. */
static inline int mpidata_incoming_busy(const mpidata_incoming *in) {
    return in->receives.n > 0 || in->n_pending > 0 || in->parcels_under_way > 0 || in->questions_under_way > 0 ||
           in->answers_under_way > 0;
}

#endif
