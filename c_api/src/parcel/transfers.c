#include "parcel/transfers.h"

#include <stdlib.h>
#include <string.h>

#include "base/wait.h"
#include "containers/array.h"

enum { AT_FIRST = 32 };

void mpidata_transfers_close(mpidata_transfers *transfers) {
    free(transfers->requests);
    free(transfers->of);
    free(transfers->done);
    free(transfers->statuses);
    memset(transfers, 0, sizeof *transfers);
}

/* Room for one more. */
static int reserve(mpidata_transfers *transfers) {
    if (transfers->n < transfers->allocated) return MPIDATA_SUCCESS;
    int64_t n = mpidata_array_room(transfers->allocated, transfers->n + 1, AT_FIRST);
    if (!mpidata_array_resize(&transfers->requests, n, sizeof *transfers->requests) ||
        !mpidata_array_resize(&transfers->of, n, sizeof *transfers->of) ||
        !mpidata_array_resize(&transfers->done, n, sizeof *transfers->done) ||
        !mpidata_array_resize(&transfers->statuses, n, sizeof *transfers->statuses))
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the messages of parcels.");
    transfers->allocated = n;
    return MPIDATA_SUCCESS;
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

static int note_ended(mpidata_transfers *transfers, int n_done) {
    for (int i = 0; i < n_done; i++) {
        int code = transfers->statuses[i].MPI_ERROR;
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
    int n_done;
    MPIDATA_TRY(mpidata_test_some(transfers->n, transfers->requests, &n_done, transfers->done, transfers->statuses));
    MPIDATA_TRY(note_ended(transfers, n_done));
    if (!n_done) return MPIDATA_SUCCESS;
    transfers->n = mpidata_keep_under_way(transfers->n, transfers->requests, transfers->of, sizeof *transfers->of);
    *did = 1;
    return MPIDATA_SUCCESS;
}

void mpidata_transfers_forget(mpidata_transfers *transfers, mpidata_pending *pending) {
    if (!pending->left) return;
    for (int i = 0; i < transfers->n; i++) {
        if (transfers->of[i] != pending) continue;
        (void)MPI_Request_free(&transfers->requests[i]);
        transfers->requests[i] = MPI_REQUEST_NULL;
    }
    transfers->n = mpidata_keep_under_way(transfers->n, transfers->requests, transfers->of, sizeof *transfers->of);
    *pending = (mpidata_pending){.failed = 1};
}
