#include "parcel/transfers.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

enum { AT_FIRST = 32 };

void mpidata_transfers_close(mpidata_transfers *transfers) {
    free(transfers->requests);
    free(transfers->of);
    free(transfers->done);
    free(transfers->statuses);
    memset(transfers, 0, sizeof *transfers);
}

static int grow(void **array, int n, size_t size) {
    void *grown = realloc(*array, (size_t)n * size);
    if (!grown) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the messages of parcels.");
    *array = grown;
    return MPIDATA_SUCCESS;
}

/* Room for one more. */
static int reserve(mpidata_transfers *transfers) {
    if (transfers->n < transfers->allocated) return MPIDATA_SUCCESS;
    int n = transfers->allocated ? 2 * transfers->allocated : AT_FIRST;
    void *requests = transfers->requests, *of = transfers->of, *done = transfers->done, *statuses = transfers->statuses;
    int status = grow(&requests, n, sizeof *transfers->requests);
    if (!status) status = grow(&of, n, sizeof *transfers->of);
    if (!status) status = grow(&done, n, sizeof *transfers->done);
    if (!status) status = grow(&statuses, n, sizeof *transfers->statuses);
    transfers->requests = requests;
    transfers->of = of;
    transfers->done = done;
    transfers->statuses = statuses;
    if (!status) transfers->allocated = n;
    return status;
}

static int begun(mpidata_transfers *transfers, int mpi_status, const char *what, mpidata_pending *pending) {
    int status = mpidata_check_mpi(mpi_status, what);
    if (status == MPIDATA_ERR_DIED) {
        pending->failed = 1;
        return MPIDATA_SUCCESS;
    }
    MPIDATA_TRY(status);
    pending->left++;
    transfers->of[transfers->n++] = pending;
    return MPIDATA_SUCCESS;
}

int mpidata_transfers_send(mpidata_transfers *transfers, const void *data, int bytes, int rank, int tag, MPI_Comm comm,
                           mpidata_pending *pending) {
    MPIDATA_TRY(reserve(transfers));
    MPI_Request *request = &transfers->requests[transfers->n];
    return begun(transfers, MPI_Issend(data, bytes, MPI_BYTE, rank, tag, comm, request), "MPI_Issend", pending);
}

int mpidata_transfers_receive(mpidata_transfers *transfers, void *data, int bytes, MPI_Message *message,
                              mpidata_pending *pending) {
    MPIDATA_TRY(reserve(transfers));
    MPI_Request *request = &transfers->requests[transfers->n];
    return begun(transfers, MPI_Imrecv(data, bytes, MPI_BYTE, message, request), "MPI_Imrecv", pending);
}

static int note_ended(mpidata_transfers *transfers, int n_done, int each_has_code) {
    for (int i = 0; i < n_done; i++) { /* MPI_UNDEFINED is negative */
        int code = each_has_code ? transfers->statuses[i].MPI_ERROR : MPI_SUCCESS;
        mpidata_pending *pending = transfers->of[transfers->done[i]];
        pending->left--;
        if (mpidata_is_failure(code))
            pending->failed = 1;
        else
            MPIDATA_TRY_MPI(code);
    }
    return MPIDATA_SUCCESS;
}

int mpidata_transfers_test(mpidata_transfers *transfers, int *did) {
    int n_done = 0, kept = 0, n = transfers->n, class = MPI_SUCCESS;
    if (!n) return MPIDATA_SUCCESS;
    int result = MPI_Testsome(n, transfers->requests, &n_done, transfers->done, transfers->statuses);
    if (result != MPI_SUCCESS) (void)MPI_Error_class(result, &class);
    if (class != MPI_ERR_IN_STATUS) MPIDATA_TRY_MPI(result);
    MPIDATA_TRY(note_ended(transfers, n_done, class == MPI_ERR_IN_STATUS));
    if (n_done <= 0) return MPIDATA_SUCCESS;
    for (int i = 0; i < n; i++) {
        if (transfers->requests[i] == MPI_REQUEST_NULL) continue;
        transfers->requests[kept] = transfers->requests[i];
        transfers->of[kept++] = transfers->of[i];
    }
    transfers->n = kept;
    *did = 1;
    return MPIDATA_SUCCESS;
}
