#include "receive/incoming.h"

#include <stdlib.h>
#include <string.h>

#include "receive/incoming/blocks.h"
#include "receive/incoming/matching.h"

int mpidata_incoming_open(mpidata_incoming *in, mpidata_trainer *trainer) {
    memset(in, 0, sizeof *in);
    in->trainer = trainer;
    in->memory.size = MPIDATA_BUNDLE_MAX;
    mpidata_assemblies_open(&in->assemblies, &trainer->job.plan);
    return mpidata_incoming_add(in, trainer->job.data, 0, 0);
}

void mpidata_incoming_close(mpidata_incoming *in) {
    mpidata_receives_close(&in->receives);
    for (int i = 0; i < in->n_inlets; i++) mpidata_inlet_close(in, in->inlets[i]);
    free(in->inlets);
    free(in->pending);
    mpidata_message_memory_close(&in->memory);
    mpidata_assemblies_close(&in->assemblies);
}

static int has_groups(const mpidata_inlet *inlet) { return inlet->link.n_groups && !inlet->lost; }

int mpidata_incoming_validation(mpidata_incoming *in, int *did) {
    for (int i = 0; i < in->n_inlets && in->trainer->job.plan.validation; i++)
        if (has_groups(in->inlets[i])) MPIDATA_TRY(mpidata_match_messages(in, in->inlets[i], 1, did));
    return MPIDATA_SUCCESS;
}

int mpidata_incoming_take(mpidata_incoming *in, int *did) {
    for (int i = 0; i < in->n_inlets; i++)
        if (has_groups(in->inlets[i])) MPIDATA_TRY(mpidata_match_messages(in, in->inlets[i], 0, did));
    MPIDATA_TRY(mpidata_complete_blocks(in, did));
    MPIDATA_TRY(mpidata_advance_pending(in, did));
    return in->n_inlets > 1 ? mpidata_free_gone(in) : MPIDATA_SUCCESS;
}
