/* Events to the scheduler that MPI refuses, or has not sent yet, are kept no longer than necessary. No MPI. */
#include <malloc.h>
#include <stdlib.h>

#include "check.h"
#include "job/job.h"

static int isend_result, test_result, leaves; /* leaves: whether a message is sent once it is tested */
static int n_tested;
static double now;

int MPI_Isend(const void *bytes, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm, MPI_Request *request) {
    (void)bytes, (void)type, (void)target, (void)tag, (void)comm;
    CHECK(count > 0);
    *request = (MPI_Request)(uintptr_t)8; /* not null */
    return isend_result;
}

int MPI_Test(MPI_Request *request, int *done, MPI_Status *status) {
    (void)status;
    n_tested++;
    *done = leaves && !test_result;
    if (leaves || test_result) *request = MPI_REQUEST_NULL;
    return test_result;
}

int MPI_Error_string(int code, char *text, int *length) {
    (void)code;
    *length = snprintf(text, MPI_MAX_ERROR_STRING, "it failed");
    return MPI_SUCCESS;
}

int MPI_Error_class(int code, int *class) {
    *class = code;
    return MPI_SUCCESS;
}

double mpidata_now(void) { return now += 0.3; }

static size_t in_use(void) { return mallinfo2().uordblks; } /* 0 with a sanitizer */

static int send(mpidata_job *job) {
    const mpidata_event event = {.kind = MPIDATA_EVENT_NEXT};
    return mpidata_job_send_event(job, &event);
}

int main(void) {
    mpidata_job job = {.data = MPI_COMM_WORLD};

    size_t before = 0;
    for (int round = 0; round < 2; round++) { /* the first one makes what is made once */
        before = in_use();
        leaves = 1;
        isend_result = test_result = MPI_SUCCESS;
        for (int i = 0; i < 1000; i++) CHECK(send(&job) == MPIDATA_SUCCESS && !job.unsent);
        isend_result = MPI_ERR_OTHER;
        for (int i = 0; i < 1000; i++) CHECK(send(&job) == MPIDATA_ERR_MPI && !job.unsent);
        isend_result = MPI_SUCCESS;
        test_result = MPI_ERR_OTHER;
        for (int i = 0; i < 1000; i++) CHECK(send(&job) == MPIDATA_ERR_MPI && !job.unsent);
    }
    CHECK(in_use() < before + 100 * sizeof(mpidata_event));

    /* The next call frees an event that is sent later. */
    test_result = MPI_SUCCESS;
    leaves = 0;
    for (int i = 0; i < 3; i++) CHECK(send(&job) == MPIDATA_SUCCESS && job.unsent);
    leaves = 1;
    n_tested = 0;
    CHECK(send(&job) == MPIDATA_SUCCESS && !job.unsent && n_tested == 4);
    CHECK(in_use() < before + 100 * sizeof(mpidata_event));
    return 0;
}
