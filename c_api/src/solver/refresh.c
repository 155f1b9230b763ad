#include "solver/refresh.h"

#include <string.h>

#include "base/wait.h"

enum { CHUNK = 16 << 20 }; /* bytes of a broadcast */

void mpidata_refreshing_open(mpidata_refreshing *refreshing, mpidata_sender *sender) {
    *refreshing = (mpidata_refreshing){.sender = sender};
    mpidata_asking_open(&refreshing->asking, sender->job);
}

void mpidata_refreshing_close(mpidata_refreshing *refreshing) { mpidata_asking_close(&refreshing->asking); }

/* Progress this rank's samples, and listen to the scheduler. Only the rank that waits for the trainer reports its wait: others
 * wait for a rank of the group, which they would excuse forever if it is stopped. */
static int meanwhile(void *context) {
    mpidata_refreshing *refreshing = context;
    mpidata_job_waits(refreshing->sender->job, refreshing->since);
    return mpidata_sender_wait(refreshing->sender);
}

/* Room for the arrays, made once, because names, dtypes and shapes stay the same. */
static int make_room(mpidata_refreshing *refreshing, int64_t bytes) {
    if (refreshing->held && refreshing->held_bytes == bytes) return MPIDATA_SUCCESS;
    refreshing->held = mpidata_arena_take(&refreshing->arena, (size_t)bytes);
    refreshing->held_bytes = bytes;
    if (refreshing->held) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory in mpidata_refresh, for %lld bytes of published arrays",
                         (long long)bytes);
}

static int64_t held_version(const mpidata_refreshing *refreshing) {
    return refreshing->held ? refreshing->held->version : 0;
}

static int ask(mpidata_refreshing *refreshing, mpidata_parcel **answer) {
    mpidata_backoff backoff = {0};
    MPIDATA_TRY(mpidata_ask_for(&refreshing->asking, held_version(refreshing), 0));
    for (;;) {
        MPIDATA_TRY(mpidata_asking_round(&refreshing->asking, answer));
        if (*answer) return MPIDATA_SUCCESS;
        mpidata_backoff_pause(&backoff);
        MPIDATA_TRY(meanwhile(refreshing));
    }
}

/* On rank 0: ask, and keep newer arrays. *bytes: their size; 0: nothing is newer. */
static int fetch(mpidata_refreshing *refreshing, int64_t *bytes) {
    mpidata_parcel *answer = NULL;
    MPIDATA_TRY(ask(refreshing, &answer));
    *bytes = answer->head.kind == MPIDATA_PUBLISHED_SAME ? 0 : answer->sizes[0];
    int status = *bytes ? make_room(refreshing, *bytes) : MPIDATA_SUCCESS;
    if (*bytes && !status) memcpy(refreshing->held, answer->memory, (size_t)*bytes);
    mpidata_parcel_free(answer);
    return status;
}

static int broadcast(mpidata_refreshing *refreshing, void *memory, int64_t bytes, MPI_Comm group) {
    MPI_Request request;
    for (int64_t at = 0; at < bytes; at += CHUNK) {
        const int n = (int)(bytes - at < CHUNK ? bytes - at : CHUNK);
        MPIDATA_TRY_MPI(MPI_Ibcast((char *)memory + at, n, MPI_BYTE, 0, group, &request));
        MPIDATA_TRY(mpidata_wait_request(&request, MPI_STATUS_IGNORE, mpidata_sender_wait, refreshing->sender));
    }
    return MPIDATA_SUCCESS;
}

static int share(mpidata_refreshing *refreshing, int64_t bytes, MPI_Comm group) {
    MPIDATA_TRY(broadcast(refreshing, &bytes, (int64_t)sizeof bytes, group));
    if (!bytes) return MPIDATA_SUCCESS;
    MPIDATA_TRY(make_room(refreshing, bytes));
    MPIDATA_TRY(broadcast(refreshing, refreshing->held, bytes, group));
    return mpidata_contents_check(refreshing->held, (size_t)bytes);
}

int mpidata_refreshing_do(mpidata_refreshing *refreshing, MPI_Comm group, int group_size) {
    int64_t bytes = 0;
    refreshing->since = mpidata_now();
    if (refreshing->asking.job->rank_in_group == 0) MPIDATA_TRY(fetch(refreshing, &bytes));
    if (group_size > 1) MPIDATA_TRY(share(refreshing, bytes, group));
    refreshing->sender->waited += mpidata_now() - refreshing->since;
    return MPIDATA_SUCCESS;
}
