#include "solver/tally.h"

#include <stdlib.h>
#include <string.h>

#include "base/wait.h"

enum { MOST = 16, STOP = 0, CANCEL, INTERVAL, FAILED, FAILED_AT, CLOSING, CLOSED_AT, OTHERS };
static const double EVERY_S = 2e-3;

static size_t length(const mpidata_tally *tally) { return (size_t)MOST * (size_t)tally->n_counts + OTHERS; }

int mpidata_tally_open(mpidata_tally *tally, int n_counts) {
    *tally = (mpidata_tally){.n_counts = n_counts, .interval = 1, .next_interval = 1, .request = MPI_REQUEST_NULL, .since = mpidata_now()};
    tally->added = calloc(length(tally), sizeof(int64_t));
    tally->mine = calloc(length(tally), sizeof(int64_t));
    tally->sum = calloc(length(tally), sizeof(int64_t));
    if (tally->added && tally->mine && tally->sum) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory in mpidata_init.");
}

void mpidata_tally_close(mpidata_tally *tally) {
    free(tally->added);
    if (!tally->under_way) { /* else, after a misuse, MPI still has them */
        free(tally->mine);
        free(tally->sum);
    }
    tally->added = tally->mine = tally->sum = NULL;
}

int mpidata_tally_add(mpidata_tally *tally, const int64_t *counts) {
    size_t n = (size_t)tally->n_counts;
    memcpy(tally->added + (size_t)tally->steps * n, counts, n * sizeof *counts);
    return ++tally->steps >= tally->interval;
}

static int next_interval(const mpidata_tally *tally, double now) {
    double steps = EVERY_S / ((now - tally->since) / (tally->steps + 1e-9) + 1e-9);
    return steps < 1 ? 1 : steps > (double)MOST ? MOST : (int)steps;
}

int mpidata_tally_start(mpidata_tally *tally, MPI_Comm group, int64_t last, int stop, int cancel, int64_t failed_at,
                        int closes, int leads) {
    double now = mpidata_now();
    size_t n = (size_t)tally->steps * (size_t)tally->n_counts;
    int64_t *others = tally->mine + length(tally) - OTHERS;
    memset(tally->mine, 0, length(tally) * sizeof *tally->mine);
    memcpy(tally->mine, tally->added, n * sizeof *tally->mine);
    others[STOP] = stop;
    others[CANCEL] = cancel;
    others[INTERVAL] = leads ? next_interval(tally, now) : 0;
    others[FAILED] = failed_at >= 0;
    others[FAILED_AT] = failed_at >= 0 ? failed_at : 0;
    others[CLOSING] = closes;
    others[CLOSED_AT] = closes ? last + 1 : 0;
    tally->since = now;
    tally->interval = tally->next_interval;
    tally->under_way = 1;
    tally->agreed = tally->steps;
    tally->closes = closes;
    tally->first = last - tally->steps + 1;
    tally->steps = 0;
    MPIDATA_TRY_MPI(MPI_Iallreduce(tally->mine, tally->sum, (int)length(tally), MPI_INT64_T, MPI_SUM, group,
                                   &tally->request));
    return MPIDATA_SUCCESS;
}

int mpidata_tally_finish(mpidata_tally *tally, int64_t *failed, int64_t *failed_at) {
    const int64_t *others = tally->sum + length(tally) - OTHERS;
    tally->under_way = 0;
    tally->next_interval = (int)others[INTERVAL];
    *failed = others[FAILED];
    *failed_at = others[FAILED_AT];
    tally->cancelled = others[CANCEL] != 0;
    tally->closing = others[CLOSING];
    tally->closed_at = others[CLOSED_AT];
    return others[STOP] != 0;
}
