#include "job/unsent.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

struct mpidata_unsent {
    MPI_Request request;
    mpidata_unsent *next;
    double message[]; /* for its alignment */
};

int mpidata_unsent_send(mpidata_unsent **unsent, const void *message, size_t bytes, int rank, int tag, MPI_Comm comm) {
    mpidata_unsent *sent = malloc(sizeof *sent + bytes);
    if (!sent) return MPIDATA_ERR_MEMORY;
    if (bytes) memcpy(sent->message, message, bytes);
    int status = mpidata_check_mpi(MPI_Isend(sent->message, (int)bytes, MPI_BYTE, rank, tag, comm, &sent->request), "MPI_Isend");
    if (status) {
        free(sent);
        return status;
    }
    sent->next = *unsent;
    *unsent = sent;
    return MPIDATA_SUCCESS;
}

int mpidata_unsent_test(mpidata_unsent **unsent) {
    int result = MPIDATA_SUCCESS;
    for (mpidata_unsent **at = unsent; *at;) {
        mpidata_unsent *sent = *at;
        int done = 0, status = mpidata_check_mpi(MPI_Test(&sent->request, &done, MPI_STATUS_IGNORE), "MPI_Test");
        if (status && (!result || result == MPIDATA_ERR_DIED)) result = status;
        if (done || status == MPIDATA_ERR_DIED || sent->request == MPI_REQUEST_NULL) {
            *at = sent->next;
            free(sent);
        } else {
            at = &sent->next;
        }
    }
    return result;
}
