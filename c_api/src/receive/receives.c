#include "receive/receives.h"

#include <stdlib.h>
#include <string.h>

#include "base/wait.h"

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

static int grow(void **array, int n, size_t size) {
    void *grown = realloc(*array, (size_t)n * size);
    if (!grown) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory in the trainer's receive thread");
    *array = grown;
    return MPIDATA_SUCCESS;
}

int mpidata_receives_reserve(mpidata_receives *receives) {
    if (receives->n < receives->allocated) return MPIDATA_SUCCESS;
    int n = receives->allocated ? 2 * receives->allocated : MPIDATA_RECEIVES_MAX;
    void *requests = receives->requests, *list = receives->list, *ended = receives->ended, *done = receives->done;
    void *statuses = receives->statuses;
    int status = grow(&requests, n, sizeof *receives->requests);
    if (!status) status = grow(&list, n, sizeof *receives->list);
    if (!status) status = grow(&ended, n, sizeof *receives->ended);
    if (!status) status = grow(&done, n, sizeof *receives->done);
    if (!status) status = grow(&statuses, n, sizeof *receives->statuses);
    receives->requests = requests;
    receives->list = list;
    receives->ended = ended;
    receives->done = done;
    receives->statuses = statuses;
    if (!status) receives->allocated = n;
    return status;
}

void mpidata_receives_add(mpidata_receives *receives, mpidata_assembly *assembly, char *scrap) {
    receives->list[receives->n++] = (mpidata_receive){.assembly = assembly, .scrap = scrap, .since = mpidata_now()};
}

int mpidata_receives_test(mpidata_receives *receives, int *n_ended) {
    int n_done = 0, kept = 0, n = receives->n, class = MPI_SUCCESS;
    *n_ended = 0;
    if (!n) return MPIDATA_SUCCESS;
    int result = MPI_Testsome(n, receives->requests, &n_done, receives->done, receives->statuses);
    if (result != MPI_SUCCESS) (void)MPI_Error_class(result, &class);
    if (class != MPI_ERR_IN_STATUS) MPIDATA_TRY_MPI(result);
    for (int i = 0; i < n_done; i++) { /* MPI_UNDEFINED is negative */
        int code = class == MPI_ERR_IN_STATUS ? receives->statuses[i].MPI_ERROR : MPI_SUCCESS;
        receives->ended[i] = receives->list[receives->done[i]];
        receives->ended[i].failed = mpidata_is_failure(code);
        if (!receives->ended[i].failed) MPIDATA_TRY_MPI(code);
    }
    if (n_done <= 0) return MPIDATA_SUCCESS;
    for (int i = 0; i < n; i++) {
        if (receives->requests[i] == MPI_REQUEST_NULL) continue;
        receives->requests[kept] = receives->requests[i];
        receives->list[kept++] = receives->list[i];
    }
    receives->n = kept;
    *n_ended = n_done;
    return MPIDATA_SUCCESS;
}
