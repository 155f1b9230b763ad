/* Waiting without spinning: yield for some microseconds, then sleep for increasing times up to a millisecond, or up to 20 ms
 * if nothing is in flight. */
#ifndef MPIDATA_WAIT_H
#define MPIDATA_WAIT_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct {
    int idle;       /* pauses since the last work; all members start at 0 */
    int64_t waited; /* total of these pauses, ns */
} mpidata_backoff;

/* Nanoseconds to sleep now; 0: yield. Counts the pause. */
long mpidata_backoff_next(mpidata_backoff *backoff);
void mpidata_pause(long sleep_ns); /* sleep or yield so; also a sign of life */
void mpidata_backoff_pause(mpidata_backoff *backoff);

/* The same if nothing is in flight, perhaps for hours: 1 % of the time waited so far, at most 20 ms, if that is longer. */
long mpidata_backoff_next_patient(mpidata_backoff *backoff);

/* State of a caller that repeatedly waits for data in flight; starts at 0. */
typedef struct {
    double last_s; /* duration of its last wait */
    unsigned looks;
} mpidata_yields;

/* Yield between checks, for up to a millisecond if the last wait was shorter than that, else for 100 us: a sleeping thread
 * wakes late, perhaps on the core of the process that it waits for. Returns 0 when it has waited that long: the caller
 * should then sleep. */
int mpidata_yield_between(mpidata_yields *yields, double waited_s);

double mpidata_now(void); /* seconds, monotonic */

/* Complete a request; `progress` (may be NULL) is called in between. */
int mpidata_wait_request(MPI_Request *request, MPI_Status *status, int (*progress)(void *), void *context);

/* The same for a request that may take hours: patient while *under_way is 0. */
int mpidata_wait_long(MPI_Request *request, MPI_Status *status, int (*progress)(void *), void *context, const int *under_way);

/* As MPI_Testsome, with n >= 0 requests that are not MPI_REQUEST_NULL; *n_done is 0 if none has ended. The status of each ended
 * request has MPI_SUCCESS or its error, for example of a death, also for those that MPI has freed without a report. */
int mpidata_test_some(int n, MPI_Request *requests, int *n_done, int *done, MPI_Status *statuses);

/* After that: move the unfinished ones to the front, with their owner's data for each, `size` bytes; returns their number. */
int mpidata_keep_under_way(int n, MPI_Request *requests, void *of, size_t size);

/* Collective over comm: returns when all ranks have called it. */
int mpidata_wait_all_here(MPI_Comm comm);

#endif
