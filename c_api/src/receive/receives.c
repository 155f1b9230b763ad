#include "receive/receives.h"

#include <stdlib.h>
#include <string.h>

#include "base/wait.h"
#include "containers/array.h"

static const double USUALLY_DONE_S = 1.0;

void mpidata_receives_close(mpidata_receives *receives) {
    for (int i = 0; i < receives->n; i++) free(receives->list[i].scrap);
    free(receives->requests);
    free(receives->list);
    free(receives->ended);
    free(receives->done);
    free(receives->statuses);
    memset(receives, 0, sizeof *receives);
}

int mpidata_lasts_long(double since) { return mpidata_now() - since > USUALLY_DONE_S; }

int mpidata_receives_may_begin(const mpidata_receives *receives) {
    int n = receives->n;
    return n < MPIDATA_RECEIVES_MAX || mpidata_lasts_long(receives->list[n - MPIDATA_RECEIVES_MAX].since);
}

int mpidata_receives_reserve(mpidata_receives *receives) {
    if (receives->n < receives->allocated) return MPIDATA_SUCCESS;
    int64_t n = mpidata_array_room(receives->allocated, receives->n + 1, MPIDATA_RECEIVES_MAX);
    if (!mpidata_array_resize(&receives->requests, n, sizeof *receives->requests) ||
        !mpidata_array_resize(&receives->list, n, sizeof *receives->list) ||
        !mpidata_array_resize(&receives->ended, n, sizeof *receives->ended) ||
        !mpidata_array_resize(&receives->done, n, sizeof *receives->done) ||
        !mpidata_array_resize(&receives->statuses, n, sizeof *receives->statuses))
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory in the trainer's receive thread");
    receives->allocated = n;
    return MPIDATA_SUCCESS;
}

void mpidata_receives_add(mpidata_receives *receives, mpidata_assembly *assembly, char *scrap) {
    receives->list[receives->n++] = (mpidata_receive){.assembly = assembly, .scrap = scrap, .since = mpidata_now()};
}

int mpidata_receives_test(mpidata_receives *receives, int *n_ended) {
    int n_done;
    *n_ended = 0;
    MPIDATA_TRY(mpidata_test_some(receives->n, receives->requests, &n_done, receives->done, receives->statuses));
    for (int i = 0; i < n_done; i++) {
        int code = receives->statuses[i].MPI_ERROR;
        receives->ended[i] = receives->list[receives->done[i]];
        receives->ended[i].failed = mpidata_is_failure(code);
        if (!receives->ended[i].failed) MPIDATA_TRY_MPI(code);
    }
    if (!n_done) return MPIDATA_SUCCESS;
    receives->n = mpidata_keep_under_way(receives->n, receives->requests, receives->list, sizeof *receives->list);
    *n_ended = n_done;
    return MPIDATA_SUCCESS;
}
