#include "published/asking.h"

#include <stdlib.h>
#include <string.h>

void mpidata_asking_open(mpidata_asking *asking, mpidata_job *job) {
    *asking = (mpidata_asking){.job = job, .trainer = -1};
}

void mpidata_asking_close(mpidata_asking *asking) {
    if (asking->transfers.n) return;
    mpidata_inbox_close(asking->inbox);
    mpidata_transfers_close(&asking->transfers);
    asking->inbox = NULL;
}

static int no_memory(void) { return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for published arrays"); }

static int is_dead(const mpidata_job *job, int trainer) { return job->dead_trainers && job->dead_trainers[trainer]; }

/* The trainer that publishes: the first that trains. */
static int first_trainer(const mpidata_job *job) {
    for (int t = 0; t < job->plan.trainers; t++)
        if (mpidata_plan_trains(&job->plan, t) && !is_dead(job, t) && mpidata_job_trainer_rank(job, t) > 0) return t;
    return -1;
}

static int open_inbox(mpidata_asking *asking) {
    const mpidata_job *job = asking->job;
    int n = 0;
    MPIDATA_TRY_MPI(MPI_Comm_size(job->data, &n));
    int *peers = malloc((size_t)n * sizeof *peers);
    if (!peers) return no_memory();
    for (int rank = 0; rank < n; rank++) peers[rank] = -1;
    for (int t = 0; t < job->plan.trainers; t++)
        if (mpidata_job_trainer_rank(job, t) > 0) peers[mpidata_job_trainer_rank(job, t)] = t;
    asking->inbox = mpidata_inbox_open(job->data, MPIDATA_TAG_PUBLISHED, peers, n);
    free(peers);
    return asking->inbox ? MPIDATA_SUCCESS : no_memory();
}

/* A death is not an error: the scheduler reports it, or ends the job. */
static int send_question(mpidata_asking *asking) {
    const mpidata_job *job = asking->job;
    if (!asking->inbox) MPIDATA_TRY(open_inbox(asking));
    if (asking->asked.left) return MPIDATA_SUCCESS; /* it was answered, but its end has not been seen yet */
    if ((asking->trainer = first_trainer(job)) < 0) return MPIDATA_SUCCESS;
    const int rank = mpidata_job_trainer_rank(job, asking->trainer);
    mpidata_inbox_listen_to(asking->inbox, rank);
    asking->asked = (mpidata_pending){0};
    return mpidata_transfers_send(&asking->transfers, &asking->question, (int)sizeof asking->question, rank,
                                  MPIDATA_TAG_ASK, job->data, &asking->asked);
}

int mpidata_ask_for(mpidata_asking *asking, int64_t version, int waits) {
    if (asking->end) return MPIDATA_SUCCESS;
    asking->question = (mpidata_ask){.version = version, .waits = waits};
    asking->open = 1;
    return send_question(asking);
}

void mpidata_asking_end(mpidata_asking *asking) {
    if (!asking->end) asking->end = asking->open ? MPIDATA_ASKING_IS_TO_END : MPIDATA_ASKING_ENDS;
}

int mpidata_asking_is_over(const mpidata_asking *asking) {
    return (!asking->open && !asking->transfers.n) || first_trainer(asking->job) < 0;
}

/* A trainer answers in order, and this question at once: there is nothing newer. The answer to the previous one has come by
 * then. */
static int ask_for_the_end(mpidata_asking *asking) {
    asking->end = MPIDATA_ASKING_ENDS;
    asking->question = (mpidata_ask){.version = INT64_MAX};
    return asking->trainer >= 0 ? send_question(asking) : MPIDATA_SUCCESS;
}

static int name_sender(const mpidata_asking *asking, int status) {
    char text[MPIDATA_TEXT_MAX];
    if (status != MPIDATA_ERR_WIRE) return status;
    memcpy(text, mpidata_last_error(), sizeof text);
    return mpidata_error(status, "%.1500s. Trainer %d sent it", text, asking->trainer);
}

static int check(const mpidata_asking *asking, const mpidata_parcel *answer) {
    if (answer->head.kind == MPIDATA_PUBLISHED_SAME) return MPIDATA_SUCCESS;
    MPIDATA_TRY(mpidata_contents_check(answer->memory, (size_t)answer->sizes[0]));
    const mpidata_contents *contents = (const mpidata_contents *)answer->memory;
    if (answer->head.n_parts == 1 && !contents->described && (uint64_t)contents->version == answer->head.number &&
        contents->version > asking->question.version)
        return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_WIRE, "Version %lld does not answer a rank that has version %lld",
                         (long long)contents->version, (long long)asking->question.version);
}

static int take(mpidata_asking *asking, mpidata_parcel **answer) {
    mpidata_parcel_list whole = {0};
    int from = 0, did = 0;
    int status = mpidata_inbox_take(asking->inbox, &asking->transfers, &from, &did);
    if (status == MPIDATA_ERR_DIED && asking->job->dead_trainers) asking->job->dead_trainers[asking->trainer] = 1;
    if (status == MPIDATA_ERR_DIED) status = MPIDATA_SUCCESS;
    mpidata_inbox_whole(asking->inbox, &whole);
    if (!status) *answer = mpidata_parcels_pop(&whole);
    mpidata_parcels_free(&whole);
    return status;
}

int mpidata_asking_round(mpidata_asking *asking, mpidata_parcel **answer) {
    int did = 0;
    *answer = NULL;
    MPIDATA_TRY(mpidata_transfers_test(&asking->transfers, &did));
    if (asking->trainer >= 0 && is_dead(asking->job, asking->trainer)) {
        mpidata_inbox_lose(asking->inbox, mpidata_job_trainer_rank(asking->job, asking->trainer));
        asking->trainer = -1;
    }
    if (asking->end == MPIDATA_ASKING_IS_TO_END && !asking->asked.left) MPIDATA_TRY(ask_for_the_end(asking));
    if (asking->trainer < 0) return asking->open ? send_question(asking) : MPIDATA_SUCCESS;
    int status = take(asking, answer);
    if (!status && *answer && asking->end && (*answer)->head.kind != MPIDATA_PUBLISHED_SAME) {
        mpidata_parcel_free(*answer);
        *answer = NULL;
    }
    if (!status && *answer) status = check(asking, *answer);
    if (status) {
        mpidata_parcel_free(*answer);
        *answer = NULL;
        return name_sender(asking, status);
    }
    if (*answer) asking->open = 0, asking->trainer = -1;
    return MPIDATA_SUCCESS;
}
