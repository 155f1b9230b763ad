#include "loader/loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/beat.h"
#include "base/wait.h"
#include "loader/state.h"

/* Interval between signs of life while it waits. */
static const double BEAT_EVERY_S = 0.1;

static mpidata_loader loader;
static mpidata_yields yields; /* of an inference rank that waits for questions */

static int need_open(void) {
    if (loader.open) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_ORDER, "This process has not joined a job as a loader.");
}

static int tell_scheduler(int kind) {
    const mpidata_event event = {.kind = kind, .closed = {.simulation = -1}};
    int status = mpidata_job_send_event(&loader.job, &event);
    if (status == MPIDATA_ERR_DIED) mpidata_job_end_rank();
    return status;
}

static int check_threads(void) {
    int level = 0;
    MPIDATA_TRY_MPI(MPI_Query_thread(&level));
    if (level >= MPI_THREAD_MULTIPLE) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_MPI, "A loader needs MPI_THREAD_MULTIPLE, but MPI was initialised with less. Leave "
                                          "mpi4py.rc.threads alone, or use an MPI built with thread support.");
}

static int is_loader(void) { return loader.job.kind == MPIDATA_ROLE_LOADER; }

static int is_inference(void) { return loader.job.kind == MPIDATA_ROLE_INFERENCE; }

int mpidata_loader_open(MPI_Fint world, int role) {
    if (loader.open) return mpidata_error(MPIDATA_ERR_ORDER, "mpidata_loader_open: called a second time.");
    MPIDATA_TRY(check_threads());
    MPIDATA_TRY(mpidata_job_join(MPI_Comm_f2c(world), role, NULL, &loader.job));
    if (mpidata_lock_open(&loader.lock) || mpidata_lock_open(&loader.rounds) ||
        mpidata_condition_open(&loader.news) || mpidata_condition_open(&loader.wake))
        return mpidata_error(MPIDATA_ERR_MEMORY, "The loader's locks cannot be made.");
    loader.trainers = calloc((size_t)loader.job.plan.trainers, 1);
    loader.job.dead_trainers = calloc((size_t)loader.job.plan.trainers, 1);
    loader.asks_than = -1;
    if (!loader.trainers || !loader.job.dead_trainers)
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a list of the trainers.");
    for (int t = 0; t < loader.job.plan.trainers; t++)
        if (mpidata_job_trainer_rank(&loader.job, t) < 0) loader.trainers[t] = MPIDATA_TRAINER_DEAD;
    MPIDATA_TRY(mpidata_loader_open_server(&loader));
    loader.open = 1;
    int failed = pthread_create(&loader.thread, NULL, mpidata_loader_thread, &loader);
    return failed ? mpidata_error(MPIDATA_ERR_MEMORY, "The loader's thread cannot be started: %s.", strerror(failed))
                  : MPIDATA_SUCCESS;
}

int mpidata_loader_begin(void) {
    MPIDATA_TRY(need_open());
    return tell_scheduler(MPIDATA_EVENT_NEXT);
}

int mpidata_loader_published(int64_t version, mpidata_taken *newer) {
    MPIDATA_TRY(need_open());
    mpidata_lock_take(&loader.lock);
    mpidata_parcel *found = loader.published;
    loader.published = NULL;
    if (!loader.asking && !found) {
        loader.asking = 1;
        loader.asks_than = version;
    }
    mpidata_lock_give(&loader.lock);
    if (!found) return MPIDATA_ERR_AGAIN;
    *newer = (mpidata_taken){.number = (uint64_t)version};
    if (found->head.kind == MPIDATA_PUBLISHED_SAME)
        mpidata_parcel_free(found);
    else
        *newer = mpidata_taken_of(found);
    return MPIDATA_SUCCESS;
}

int mpidata_loader_fail(const char *sentence) {
    mpidata_event event = {.kind = MPIDATA_EVENT_ERROR};
    MPIDATA_TRY(need_open());
    (void)snprintf(event.text, sizeof event.text, "%s", sentence);
    return mpidata_job_send_event(&loader.job, &event);
}

static void wake_locked(void) {
    MPIDATA_LOCKED(&loader.lock);
    loader.woken = 1;
    mpidata_lock_tell_locked(&loader.lock, &loader.wake);
}

/* For an inference rank: make MPI calls here, without waiting for the thread. Yields at first, then sleeps. */
static void drive_locked(mpidata_backoff *backoff, double since, double now) {
    MPIDATA_LOCKED(&loader.lock);
    int did = 0;
    mpidata_lock_give(&loader.lock);
    if (mpidata_loader_round(&loader, &did) == MPIDATA_ERR_DIED) mpidata_job_end_rank();
    if (did)
        *backoff = (mpidata_backoff){0};
    else if (!mpidata_yield_between(&yields, now - since))
        mpidata_pause(mpidata_backoff_next_patient(backoff));
    mpidata_lock_take(&loader.lock);
}

/* Sleep until there is news or the deadline has passed; returns 0 at the deadline. */
static int wait_locked(double deadline) {
    MPIDATA_LOCKED(&loader.lock);
    double now = mpidata_now(), next = now + BEAT_EVERY_S;
    mpidata_beat();
    if (now >= deadline) return 0;
    (void)mpidata_lock_sleep_locked(&loader.lock, &loader.news, next < deadline ? next : deadline);
    return 1;
}

static int failure_locked(void) {
    MPIDATA_LOCKED(&loader.lock);
    return loader.error ? mpidata_error(loader.error, "%s", loader.error_text) : MPIDATA_SUCCESS;
}

static int nobody_asks_locked(void) {
    MPIDATA_LOCKED(&loader.lock);
    return is_loader() && !memchr(loader.trainers, MPIDATA_TRAINER_ASKS, (size_t)loader.job.plan.trainers);
}

/* As wait_locked. An inference rank checks at least once. */
static int wait_for_request_locked(mpidata_backoff *backoff, int *looked, double since, double deadline) {
    MPIDATA_LOCKED(&loader.lock);
    if (!is_inference()) return wait_locked(deadline);
    const double now = mpidata_now();
    if (now >= deadline && *looked) return 0;
    *looked = 1;
    drive_locked(backoff, since, now);
    return 1;
}

static int next_parcel(mpidata_parcel **request, uint32_t *more, double timeout_s) {
    MPIDATA_TRY(need_open());
    double since = mpidata_now(), deadline = since + timeout_s;
    int status, looked = timeout_s < 0;
    mpidata_backoff backoff = {0};
    mpidata_parcel *first = NULL;
    atomic_store(&loader.driven, is_inference());
    mpidata_lock_take(&loader.lock);
    do {
        status = failure_locked();
        if (!status && loader.leave) status = MPIDATA_END;
        if (!status && !(first = mpidata_parcels_pop(&loader.requests)))
            status = timeout_s > 0 && nobody_asks_locked() ? MPIDATA_END : MPIDATA_ERR_AGAIN;
    } while (status == MPIDATA_ERR_AGAIN && !loader.published && wait_for_request_locked(&backoff, &looked, since, deadline));
    *more = loader.requests.first != NULL;
    mpidata_lock_give(&loader.lock);
    atomic_store(&loader.driven, 0);
    mpidata_beat();
    if (timeout_s > 0) yields.last_s = mpidata_now() - since; /* else it has only checked */
    *request = first;
    return status;
}

int mpidata_loader_next(mpidata_taken *request, double timeout_s) {
    return mpidata_loader_next_into(request, NULL, 0, timeout_s);
}

int mpidata_loader_next_into(mpidata_taken *request, char *memory, int64_t room, double timeout_s) {
    uint32_t more = 0;
    mpidata_parcel *parcel;
    MPIDATA_TRY(next_parcel(&parcel, &more, timeout_s));
    *request = mpidata_taken_of(parcel);
    request->more = more;
    if (more || !room || !mpidata_parcel_copy(parcel, memory, room, &request->bytes)) return MPIDATA_SUCCESS;
    request->parcel = NULL;
    request->offsets = request->sizes = NULL;
    request->memory = NULL;
    mpidata_parcel_free(parcel);
    return MPIDATA_SUCCESS;
}

int mpidata_loader_answer(const mpidata_taken *request, uint32_t status, int64_t n_parts, const void *const *parts,
                          const int64_t *sizes, int64_t ticket) {
    mpidata_sending *answer;
    const mpidata_parcel_head head = {.magic = MPIDATA_PARCEL_MAGIC,
                                      .dataset = request->dataset,
                                      .kind = request->kind,
                                      .status = status,
                                      .number = request->number,
                                      .n_parts = n_parts};
    MPIDATA_TRY(need_open());
    if (request->peer < 0 || request->peer >= loader.n_peers)
        return mpidata_error(MPIDATA_ERR_ARGUMENT, "There is no %s %d.", is_loader() ? "trainer" : "rank", (int)request->peer);
    const mpidata_parcel_rest rest = mpidata_parcel_begin_rest(sizes, n_parts);
    if (ticket < 0 && mpidata_parcel_has_rest(&rest))
        return mpidata_error(MPIDATA_ERR_ARGUMENT, "An answer without a ticket is copied whole: it is too large for that.");
    MPIDATA_TRY(mpidata_sending_new(&head, sizes, parts, 0, &answer));
    answer->to = request->peer;
    answer->ticket = ticket;
    mpidata_lock_take(&loader.lock);
    int failed = failure_locked();
    if (!failed) {
        mpidata_sendings_append(&loader.answers, answer);
        loader.under_way++;
        if (!is_inference()) wake_locked();
    }
    mpidata_lock_give(&loader.lock);
    if (failed) mpidata_sending_free(answer);
    if (!failed && is_inference() && (failed = mpidata_loader_send(&loader)) == MPIDATA_ERR_DIED) mpidata_job_end_rank();
    mpidata_beat();
    return failed;
}

int mpidata_loader_sent(int64_t *ticket) {
    MPIDATA_TRY(need_open());
    mpidata_lock_take(&loader.lock);
    mpidata_sending *answer = mpidata_sendings_pop(&loader.sent);
    mpidata_lock_give(&loader.lock);
    if (!answer) return MPIDATA_ERR_AGAIN;
    *ticket = answer->ticket;
    mpidata_sending_free(answer);
    return MPIDATA_SUCCESS;
}

void mpidata_loader_starts(int yes) {
    if (yes)
        mpidata_tell(MPIDATA_PULSE_STARTING);
    else
        mpidata_withdraw(MPIDATA_PULSE_STARTING);
}

int mpidata_loader_rest(void) {
    MPIDATA_TRY(need_open());
    mpidata_lock_take(&loader.lock);
    while (loader.under_way && !loader.error && !loader.leave) (void)wait_locked(mpidata_now() + 1.0);
    int status = failure_locked();
    if (!status && (loader.leave || loader.job.spawned)) status = MPIDATA_END;
    for (int i = 0; i < loader.job.plan.trainers; i++)
        if (loader.trainers[i] == MPIDATA_TRAINER_SAID_FAREWELL) loader.trainers[i] = MPIDATA_TRAINER_ASKS;
    mpidata_lock_give(&loader.lock);
    return status ? status : tell_scheduler(MPIDATA_EVENT_NEXT);
}

/* Receive published arrays that may be in flight to this rank: the sender keeps a large version until it has come. */
static void hear_the_rest(void) {
    mpidata_backoff backoff = {0};
    while (!mpidata_loader_asks_no_more(&loader)) {
        mpidata_pause(mpidata_backoff_next(&backoff));
        mpidata_lock_take(&loader.lock);
        const int failed = loader.error;
        mpidata_lock_give(&loader.lock);
        if (failed) return;
    }
}

int mpidata_loader_close(void) {
    MPIDATA_TRY(need_open());
    hear_the_rest();
    mpidata_lock_take(&loader.lock);
    while (loader.under_way && !loader.error) (void)wait_locked(mpidata_now() + 1.0);
    int failed = failure_locked();
    loader.quit = 1;
    wake_locked();
    mpidata_lock_give(&loader.lock);
    (void)pthread_join(loader.thread, NULL);
    mpidata_loader_close_server(&loader);
    if (!failed) failed = tell_scheduler(MPIDATA_EVENT_FINALIZED);
    mpidata_parcels_free(&loader.requests);
    mpidata_sendings_free(&loader.sent);
    mpidata_parcel_free(loader.published);
    mpidata_lock_close(&loader.lock);
    mpidata_lock_close(&loader.rounds);
    (void)pthread_cond_destroy(&loader.news);
    (void)pthread_cond_destroy(&loader.wake);
    mpidata_job_leave(&loader.job);
    free(loader.trainers);
    memset(&loader, 0, sizeof loader);
    mpidata_job_left();
    return failed;
}
