/* Waiting without spinning: yield for some microseconds, then sleep, longer and longer up to a millisecond. */
#ifndef MPIDATA_WAIT_H
#define MPIDATA_WAIT_H

#include <stddef.h>

#include "base/status.h"

typedef struct {
    int idle; /* pauses since the last work; 0 to start */
} mpidata_backoff;

/* Nanoseconds to sleep now; 0: yield. Counts the pause. */
long mpidata_backoff_next(mpidata_backoff *backoff);
void mpidata_backoff_pause(mpidata_backoff *backoff); /* a sign of life, too */

double mpidata_now(void); /* seconds, monotonic */

/* Complete a request; `progress` (may be NULL) is called in between. */
int mpidata_wait_request(MPI_Request *request, MPI_Status *status, int (*progress)(void *), void *context);

/* As MPI_Testsome, with n requests or none, of which none is MPI_REQUEST_NULL; *n_done 0 if none has ended. Each ended one has
 * its error, of a death say, or MPI_SUCCESS in its status, also those that MPI has given up without telling. */
int mpidata_test_some(int n, MPI_Request *requests, int *n_done, int *done, MPI_Status *statuses);

/* Behind that: move those that have not ended to the front, with what their owner keeps of each, `size` bytes; how many. */
int mpidata_keep_under_way(int n, MPI_Request *requests, void *of, size_t size);

/* Collective over comm: returns when all ranks have come. */
int mpidata_wait_all_here(MPI_Comm comm);

#endif
