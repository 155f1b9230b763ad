/* Waiting without spinning: yield for some microseconds, then sleep, longer and longer up to a millisecond; where nothing is
 * under way, up to 20 ms. */
#ifndef MPIDATA_WAIT_H
#define MPIDATA_WAIT_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct {
    int idle;       /* pauses since the last work; 0 to start, as all */
    int64_t waited; /* ns of them */
} mpidata_backoff;

/* Nanoseconds to sleep now; 0: yield. Counts the pause. */
long mpidata_backoff_next(mpidata_backoff *backoff);
void mpidata_pause(long sleep_ns); /* for that; a sign of life, too */
void mpidata_backoff_pause(mpidata_backoff *backoff);

/* The same where nothing is under way, as may be for hours: 1 % of what it has waited, 20 ms at most, where that is longer. */
long mpidata_backoff_next_patient(mpidata_backoff *backoff);

/* Of one who waits, again and again, for what is on its way; 0 to start. */
typedef struct {
    double last_s; /* for which it waited last */
    unsigned looks;
} mpidata_yields;

/* Yield now and then between looks, for up to a millisecond where it has waited less than that last, else for 100 us: one who
 * sleeps is woken late, and may be woken on the core of whom it waits for. Returns 0 when it has waited for so long already:
 * then sleep. */
int mpidata_yield_between(mpidata_yields *yields, double waited_s);

double mpidata_now(void); /* seconds, monotonic */

/* Complete a request; `progress` (may be NULL) is called in between. */
int mpidata_wait_request(MPI_Request *request, MPI_Status *status, int (*progress)(void *), void *context);

/* The same for one that may take hours: patient while *under_way is 0. */
int mpidata_wait_long(MPI_Request *request, MPI_Status *status, int (*progress)(void *), void *context, const int *under_way);

/* As MPI_Testsome, with n requests or none, of which none is MPI_REQUEST_NULL; *n_done 0 if none has ended. Each ended one has
 * its error, of a death say, or MPI_SUCCESS in its status, also those that MPI has given up without telling. */
int mpidata_test_some(int n, MPI_Request *requests, int *n_done, int *done, MPI_Status *statuses);

/* Behind that: move those that have not ended to the front, with what their owner keeps of each, `size` bytes; how many. */
int mpidata_keep_under_way(int n, MPI_Request *requests, void *of, size_t size);

/* Collective over comm: returns when all ranks have come. */
int mpidata_wait_all_here(MPI_Comm comm);

#endif
