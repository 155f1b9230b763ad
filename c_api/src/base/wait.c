#include "base/wait.h"

#include <sched.h>
#include <string.h>
#include <time.h>

#include "base/beat.h"

enum { YIELDS = 8, SHORTEST_NS = 5000, LONGEST_NS = 1000000, PATIENT_NS = 20000000, PART = 100, LOOKS_PER_YIELD = 4 };
static const double YIELDS_S = 1e-3, YIELDS_AT_LEAST_S = 1e-4;

static long count(mpidata_backoff *backoff, long sleep_ns) {
    if (backoff->waited < (int64_t)PART * PATIENT_NS) backoff->waited += sleep_ns;
    return sleep_ns;
}

static long next_of(mpidata_backoff *backoff) {
    if (backoff->idle < 1000) backoff->idle++;
    if (backoff->idle <= YIELDS) return 0;
    long sleep_ns = SHORTEST_NS;
    for (int i = YIELDS; i < backoff->idle && sleep_ns < LONGEST_NS; i += 4) sleep_ns += sleep_ns / 4;
    return sleep_ns < LONGEST_NS ? sleep_ns : LONGEST_NS;
}

long mpidata_backoff_next(mpidata_backoff *backoff) { return count(backoff, next_of(backoff)); }

long mpidata_backoff_next_patient(mpidata_backoff *backoff) {
    const long sleep_ns = next_of(backoff), part = (long)(backoff->waited / PART);
    const long most = part < PATIENT_NS ? part : PATIENT_NS;
    return count(backoff, most > sleep_ns ? most : sleep_ns);
}

void mpidata_pause(long sleep_ns) {
    mpidata_beat();
    if (sleep_ns == 0) {
        (void)sched_yield();
        return;
    }
    struct timespec time = {.tv_sec = 0, .tv_nsec = sleep_ns};
    (void)nanosleep(&time, NULL);
}

void mpidata_backoff_pause(mpidata_backoff *backoff) { mpidata_pause(mpidata_backoff_next(backoff)); }

int mpidata_yield_between(mpidata_yields *yields, double waited_s) {
    if (waited_s > (yields->last_s < YIELDS_S ? YIELDS_S : YIELDS_AT_LEAST_S)) return 0;
    mpidata_beat();
    if (yields->looks++ % LOOKS_PER_YIELD == 0) (void)sched_yield();
    return 1;
}

double mpidata_now(void) {
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int mpidata_wait_long(MPI_Request *request, MPI_Status *status, int (*progress)(void *), void *context, const int *under_way) {
    mpidata_backoff backoff = {0};
    for (;;) {
        int done = 0;
        MPIDATA_TRY_MPI(MPI_Test(request, &done, status));
        if (done) return MPIDATA_SUCCESS;
        if (progress) MPIDATA_TRY(progress(context));
        mpidata_pause(*under_way ? mpidata_backoff_next(&backoff) : mpidata_backoff_next_patient(&backoff));
    }
}

int mpidata_wait_request(MPI_Request *request, MPI_Status *status, int (*progress)(void *), void *context) {
    static const int under_way = 1;
    return mpidata_wait_long(request, status, progress, context, &under_way);
}

static int is_among(int value, int n, const int *values) {
    for (int i = 0; i < n; i++)
        if (values[i] == value) return 1;
    return 0;
}

/* If a peer has died, Open MPI frees all requests that fail because of it, but reports only those that had failed before. */
static int add_untold(int n, const MPI_Request *requests, int n_done, int *done, MPI_Status *statuses) {
    int failed = 0, all = n_done;
    while (failed < n_done && statuses[failed].MPI_ERROR == MPI_SUCCESS) failed++;
    for (int i = 0; i < n && failed < n_done; i++) {
        if (requests[i] != MPI_REQUEST_NULL || is_among(i, n_done, done)) continue;
        statuses[all] = statuses[failed];
        done[all++] = i;
    }
    return all;
}

int mpidata_test_some(int n, MPI_Request *requests, int *n_done, int *done, MPI_Status *statuses) {
    int ended = 0, class = MPI_SUCCESS;
    *n_done = 0;
    if (!n) return MPIDATA_SUCCESS;
    int result = MPI_Testsome(n, requests, &ended, done, statuses);
    if (result != MPI_SUCCESS) (void)MPI_Error_class(result, &class);
    if (class != MPI_ERR_IN_STATUS) MPIDATA_TRY(mpidata_check_mpi(result, "MPI_Testsome"));
    if (ended > 0) *n_done = ended; /* MPI_UNDEFINED is negative */
    for (int i = 0; i < *n_done && class != MPI_ERR_IN_STATUS; i++) statuses[i].MPI_ERROR = MPI_SUCCESS;
    if (class == MPI_ERR_IN_STATUS) *n_done = add_untold(n, requests, *n_done, done, statuses);
    return MPIDATA_SUCCESS;
}

int mpidata_keep_under_way(int n, MPI_Request *requests, void *of, size_t size) {
    int kept = 0;
    for (int i = 0; i < n; i++) {
        if (requests[i] == MPI_REQUEST_NULL) continue;
        requests[kept] = requests[i];
        if (kept < i) memcpy((char *)of + (size_t)kept * size, (char *)of + (size_t)i * size, size);
        kept++;
    }
    return kept;
}

int mpidata_wait_all_here(MPI_Comm comm) {
    MPI_Request request;
    MPIDATA_TRY_MPI(MPI_Ibarrier(comm, &request));
    return mpidata_wait_request(&request, MPI_STATUS_IGNORE, NULL, NULL);
}
