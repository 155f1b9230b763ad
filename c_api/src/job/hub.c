#include "job/hub.h"

#include <stdlib.h>

#include "job/failure.h"

enum { TAG_HUB = 1 };

static int open_pair(MPI_Comm hub, MPI_Group all, int trainer, MPI_Comm *pair) {
    MPI_Group two;
    const int ranks[] = {0, 1 + trainer};
    MPIDATA_TRY_MPI(MPI_Group_incl(all, 2, ranks, &two));
    MPIDATA_TRY_MPI(MPI_Comm_create_group(hub, two, trainer, pair));
    MPIDATA_TRY_MPI(MPI_Comm_set_errhandler(*pair, MPI_ERRORS_RETURN));
    return mpidata_check_mpi(MPI_Group_free(&two), "MPI_Group_free");
}

int mpidata_hub_open(mpidata_hub *hub, const mpidata_plan *plan, int kind, int index) {
    MPI_Group all;
    if (!plan->trainers_at_least || !(plan->spawn || plan->loaders_spawn)) return MPIDATA_SUCCESS;
    const int leads = kind == MPIDATA_ROLE_SCHEDULER, n = leads ? plan->trainers : 1;
    hub->pairs = calloc((size_t)n, sizeof *hub->pairs);
    if (!hub->pairs) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for %d communicators.", n);
    MPIDATA_TRY_MPI(MPI_Comm_group(hub->comm, &all));
    for (int i = 0; i < n; i++) MPIDATA_TRY(open_pair(hub->comm, all, leads ? i : index, &hub->pairs[i]));
    return mpidata_check_mpi(MPI_Group_free(&all), "MPI_Group_free");
}

/* Pairs are left to MPI_Finalize, because freeing them may wait for dead ranks. */
void mpidata_hub_close(mpidata_hub *hub) {
    free(hub->pairs);
    hub->pairs = NULL;
}

/* A failed communicator is left to MPI. */
int mpidata_hub_unite(MPI_Comm own, MPI_Comm peers, int leader, int last, MPI_Comm *united) {
    MPI_Comm between;
    MPIDATA_TRY_MPI(MPI_Intercomm_create(own, 0, peers, leader, TAG_HUB, &between));
    MPIDATA_TRY_MPI(MPI_Comm_set_errhandler(between, MPI_ERRORS_RETURN));
    MPIDATA_TRY_MPI(MPI_Intercomm_merge(between, last, united));
    MPIDATA_TRY_MPI(MPI_Comm_set_errhandler(*united, MPI_ERRORS_RETURN));
    return mpidata_check_mpi(MPI_Comm_free(&between), "MPI_Comm_free");
}

int mpidata_hub_let_others_be_made(void) {
    MPI_Comm own;
    MPIDATA_TRY_MPI(MPI_Comm_dup(MPI_COMM_SELF, &own));
    return mpidata_check_mpi(MPI_Comm_free(&own), "MPI_Comm_free");
}

/* Let one more trainer in. None continues before all have made it: Open MPI 5.0 crashes if it is revoked earlier. */
static int grow(MPI_Comm *hub, MPI_Comm pair, int peer, int comes) {
    MPI_Comm grown;
    MPIDATA_TRY(mpidata_hub_unite(*hub, pair, peer, comes, &grown));
    MPIDATA_TRY_MPI(MPI_Comm_free(hub));
    *hub = grown;
    return mpidata_check_mpi(MPI_Barrier(grown), "MPI_Barrier");
}

static int begin(MPI_Comm *hub) {
    MPIDATA_TRY_MPI(MPI_Comm_dup(MPI_COMM_SELF, hub));
    return mpidata_check_mpi(MPI_Comm_set_errhandler(*hub, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

/* All take each step, so that none waits for the scheduler: after a failure, its members also fail in the later steps, and
 * trainers that come later join another one. At the end the scheduler tells all whether all are in it. */
int mpidata_hub_renew_as_scheduler(mpidata_hub *hub, int n, const int *trainers) {
    MPI_Comm comm;
    int failed = MPIDATA_SUCCESS;
    MPIDATA_TRY(begin(&comm));
    for (int i = 0; i < n; i++) {
        const int status = grow(&comm, hub->pairs[trainers[i]], 1, 0);
        if (!status) continue;
        failed = status;
        (void)mpidata_revoke(comm);
        MPIDATA_TRY(begin(&comm));
    }
    for (int i = 0; i < n; i++) (void)MPI_Send(&failed, 1, MPI_INT, 1, TAG_HUB, hub->pairs[trainers[i]]);
    hub->comm = comm; /* the previous one is left to MPI */
    return failed;
}

int mpidata_hub_renew_as_trainer(mpidata_hub *hub, int n, int place) {
    MPI_Comm comm;
    int failed = 0;
    MPIDATA_TRY(begin(&comm));
    int status = grow(&comm, hub->pairs[0], 0, 1);
    for (int i = place + 1; i < n; i++) {
        const int later = grow(&comm, MPI_COMM_NULL, 0, 0);
        if (later) status = later;
    }
    MPIDATA_TRY_MPI(MPI_Recv(&failed, 1, MPI_INT, 0, TAG_HUB, hub->pairs[0], MPI_STATUS_IGNORE));
    hub->comm = comm;
    MPIDATA_TRY(status);
    return failed ? mpidata_error(MPIDATA_ERR_DIED, "A trainer has died while the others reconnected.") : MPIDATA_SUCCESS;
}
