#include "receive/incoming/inlets.h"

#include <stdlib.h>

#include "containers/array.h"
#include "receive/incoming/received_constants.h"

static int no_memory(void) { return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory in the trainer's receive thread."); }

static void open_sources(mpidata_inlet *inlet, const mpidata_plan *plan) {
    for (int i = 0; i < inlet->link.n_ranks * MPIDATA_STREAMS; i++) {
        mpidata_source *source = &inlet->sources[i];
        source->link = &inlet->link;
        source->rank = i / MPIDATA_STREAMS;
        source->validation = i % MPIDATA_STREAMS;
        source->group = mpidata_link_group(&inlet->link, plan, source->rank, &source->rank_in_group);
        source->request = MPI_REQUEST_NULL;
    }
}

static int open_spawned(mpidata_inlet *inlet, const mpidata_job *job, MPI_Comm comm, int role, int number) {
    int *ranks = malloc((size_t)job->plan.trainers * sizeof *ranks);
    if (!ranks) return no_memory();
    int status = mpidata_job_trainers_in(job, comm, ranks);
    if (!status) status = mpidata_link_open_spawned(&inlet->link, comm, role, number, &job->plan, ranks);
    free(ranks);
    return status;
}

int mpidata_incoming_add(mpidata_incoming *in, MPI_Comm comm, int role, int number) {
    const mpidata_plan *plan = &in->trainer->job.plan;
    mpidata_inlet *inlet = calloc(1, sizeof *inlet);
    if (!inlet || !mpidata_array_resize(&in->inlets, in->n_inlets + 1, sizeof *in->inlets)) {
        free(inlet);
        return no_memory();
    }
    int status = in->n_inlets ? open_spawned(inlet, &in->trainer->job, comm, role, number)
                              : mpidata_link_open_world(&inlet->link, comm, plan);
    if (!status) {
        inlet->sources = calloc((size_t)inlet->link.n_ranks * MPIDATA_STREAMS, sizeof *inlet->sources);
        if (!inlet->sources) status = no_memory();
    }
    if (status) {
        mpidata_link_close(&inlet->link);
        free(inlet);
        return status;
    }
    open_sources(inlet, plan);
    in->inlets[in->n_inlets++] = inlet;
    return MPIDATA_SUCCESS;
}

mpidata_inlet *mpidata_inlet_of(const mpidata_incoming *in, int role, int number) {
    for (int i = 0; i < in->n_inlets; i++)
        if (mpidata_link_leader(&in->inlets[i]->link, &in->trainer->job.plan, role, number) >= 0) return in->inlets[i];
    return NULL;
}

void mpidata_inlet_close(mpidata_incoming *in, mpidata_inlet *inlet) {
    for (int i = 0; i < inlet->link.n_ranks * MPIDATA_STREAMS; i++) {
        mpidata_source *source = &inlet->sources[i];
        mpidata_let_go_of_constants(in, source);
        free(source->blocks);
        mpidata_kept_clear(&source->maps);
        if (source->message) mpidata_message_memory_give_back(&in->memory, source->message, source->bytes);
        mpidata_messages_free(&source->waiting);
    }
    mpidata_inbox_close(inlet->inbox);
    mpidata_inbox_close(inlet->questions);
    mpidata_inbox_close(inlet->answers);
    free(inlet->sources);
    mpidata_link_close(&inlet->link);
    free(inlet);
}
