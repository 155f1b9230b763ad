#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/beat.h"
#include "base/wait.h"
#include "loader/state.h"
#include "program/caller.h"

/* Interval between checks for messages of the scheduler. */
static const double LISTEN_EVERY_S = 1e-3;
/* Interval between checks whether the caller has stopped making rounds: the delay of operations that it leaves in flight. */
enum { DRIVEN_NS = 2000000 };

/* State of rounds. */
typedef struct mpidata_loader_server {
    mpidata_loader *loader;
    mpidata_link link;
    mpidata_inbox *inbox;
    mpidata_transfers transfers;
    mpidata_sending_list sending;
    mpidata_asking asking; /* of an inference rank */
    int heard;             /* the first answer to that has come */
    double next_listen;
    atomic_int moving; /* transfers after the last round: the thread reads it even while the caller makes rounds */
} server;

static int no_memory(void) { return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory in the loader."); }

static int is_inference(const mpidata_loader *loader) { return loader->job.kind == MPIDATA_ROLE_INFERENCE; }

static int is_loader(const mpidata_loader *loader) { return loader->job.kind == MPIDATA_ROLE_LOADER; }

/* Whether ranks of this role ask; an inference rank also gets questions from trainers, for spawned solver ranks. */
static int asks(const mpidata_loader *loader, int role) {
    if (loader->job.kind == MPIDATA_ROLE_LEARNER) return role == MPIDATA_ROLE_SCHEDULER;
    return role == MPIDATA_ROLE_TRAINER || (role == MPIDATA_ROLE_SOLVER && is_inference(loader));
}

static int open_inbox(server *s) {
    const mpidata_job *job = &s->loader->job;
    int *peers = malloc((size_t)s->link.n_ranks * sizeof *peers);
    if (!peers) return no_memory();
    for (int rank = 0; rank < s->link.n_ranks; rank++) peers[rank] = -1;
    for (int t = 0; t < job->plan.trainers && is_loader(s->loader); t++)
        if (mpidata_job_trainer_rank(job, t) > 0) peers[mpidata_job_trainer_rank(job, t)] = t;
    for (int rank = 0, number; rank < s->link.n_ranks && !is_loader(s->loader); rank++)
        if (asks(s->loader, mpidata_link_role(&s->link, &job->plan, rank, &number))) peers[rank] = rank;
    const int tag = is_inference(s->loader) ? MPIDATA_TAG_QUESTION : MPIDATA_TAG_REQUEST;
    s->inbox = mpidata_inbox_open(job->data, tag, peers, s->link.n_ranks);
    free(peers);
    return s->inbox ? MPIDATA_SUCCESS : no_memory();
}

int mpidata_loader_open_server(mpidata_loader *loader) {
    const mpidata_job *job = &loader->job;
    server *s = loader->server = calloc(1, sizeof *s); /* MPI may still write to it after everything was closed */
    if (!s) return no_memory();
    s->loader = loader;
    if (job->spawned)
        MPIDATA_TRY(mpidata_link_open_spawned(&s->link, job->data, job->kind, job->index, &job->plan,
                                              job->trainer_ranks));
    else
        MPIDATA_TRY(mpidata_link_open_world(&s->link, job->data, &job->plan));
    mpidata_asking_open(&s->asking, &loader->job);
    loader->n_peers = is_loader(loader) ? job->plan.trainers : s->link.n_ranks;
    return open_inbox(s);
}

/* Memory that MPI still reads or writes stays until the process ends. */
void mpidata_loader_close_server(mpidata_loader *loader) {
    server *s = loader->server;
    if (s->transfers.n || s->asking.transfers.n) return;
    mpidata_asking_close(&s->asking);
    mpidata_inbox_close(s->inbox);
    mpidata_sendings_free(&s->sending);
    mpidata_transfers_close(&s->transfers);
    mpidata_link_close(&s->link);
    free(s);
}

/* Ask for published arrays, if the caller wants them, and hand them over. */
static int look_for_published(server *s) {
    mpidata_loader *loader = s->loader;
    mpidata_parcel *newer = NULL;
    mpidata_lock_take(&loader->lock);
    const int asking = loader->asking;
    const int64_t than = loader->asks_than;
    loader->asks_than = -1;
    mpidata_lock_give(&loader->lock);
    if (!asking) return MPIDATA_SUCCESS;
    if (than >= 0) MPIDATA_TRY(mpidata_ask_for(&s->asking, than, s->heard));
    MPIDATA_TRY(mpidata_asking_round(&s->asking, &newer));
    if (!newer) return MPIDATA_SUCCESS;
    s->heard = 1;
    mpidata_lock_take(&loader->lock);
    loader->published = newer;
    loader->asking = 0;
    mpidata_lock_tell_locked(&loader->lock, &loader->news);
    mpidata_lock_give(&loader->lock);
    return MPIDATA_SUCCESS;
}

/* An error is also that of the rounds, which report it. */
int mpidata_loader_asks_no_more(mpidata_loader *loader) {
    server *s = loader->server;
    mpidata_parcel *unwanted = NULL;
    mpidata_lock_take(&loader->rounds);
    mpidata_asking_end(&s->asking);
    const int status = mpidata_asking_round(&s->asking, &unwanted);
    const int over = status || mpidata_asking_is_over(&s->asking);
    mpidata_lock_give(&loader->rounds);
    mpidata_parcel_free(unwanted);
    return over;
}

static int listen(server *s) {
    double now = mpidata_now();
    mpidata_loader *loader = s->loader;
    if (now < s->next_listen) return MPIDATA_SUCCESS;
    s->next_listen = now + LISTEN_EVERY_S;
    MPIDATA_TRY(mpidata_job_listen(&loader->job));
    if (is_inference(loader)) MPIDATA_TRY(look_for_published(s));
    if (!loader->job.told_to_stop) return MPIDATA_SUCCESS;
    mpidata_lock_take(&loader->lock);
    if (!loader->leave) mpidata_lock_tell_locked(&loader->lock, &loader->news);
    loader->leave = 1;
    mpidata_lock_give(&loader->lock);
    return MPIDATA_SUCCESS;
}

static int rank_of(const mpidata_loader *loader, int peer) {
    return is_loader(loader) ? mpidata_job_trainer_rank(&loader->job, peer) : peer;
}

static int send_answers(server *s, int *did) {
    mpidata_loader *loader = s->loader;
    for (;;) {
        mpidata_lock_take(&loader->lock);
        mpidata_sending *answer = mpidata_sendings_pop(&loader->answers);
        mpidata_lock_give(&loader->lock);
        if (!answer) return MPIDATA_SUCCESS;
        *did = 1;
        mpidata_sendings_append(&s->sending, answer);
        const int rank = rank_of(loader, answer->to), tag = is_inference(loader) ? MPIDATA_TAG_ANSWER
                                                                                 : MPIDATA_TAG_PARCEL;
        if (rank >= 0 && s->link.dead[rank]) continue;
        MPIDATA_TRY(mpidata_sending_begin(answer, &s->transfers, rank, tag, loader->job.data));
    }
}

/* Transfers to a dead rank have ended. */
static void forget(server *s, int rank) {
    for (mpidata_sending *answer = s->sending.first; answer; answer = answer->next)
        if (rank_of(s->loader, answer->to) == rank) mpidata_transfers_forget(&s->transfers, &answer->pending);
}

/* A dead trainer sends no farewell. */
static int note_deaths(server *s) {
    mpidata_loader *loader = s->loader;
    const mpidata_link *link = &s->link;
    MPIDATA_TRY(mpidata_link_deaths(&s->link));
    if (link->dead[0]) return mpidata_job_scheduler_gone(&loader->job.plan);
    mpidata_lock_take(&loader->lock);
    for (int i = 0; i < link->n_newly; i++) {
        int number, role = mpidata_link_role(link, &loader->job.plan, link->newly[i], &number);
        if (!asks(loader, role)) continue;
        mpidata_inbox_lose(s->inbox, link->newly[i]);
        forget(s, link->newly[i]);
        if (role == MPIDATA_ROLE_TRAINER) loader->trainers[number] = MPIDATA_TRAINER_DEAD;
        if (role == MPIDATA_ROLE_TRAINER) loader->job.dead_trainers[number] = 1;
    }
    mpidata_lock_tell_locked(&loader->lock, &loader->news);
    mpidata_lock_give(&loader->lock);
    return MPIDATA_SUCCESS;
}

static int take_requests(server *s, mpidata_parcel_list *whole, int *did) {
    int from = 0;
    char who[128], text[MPIDATA_TEXT_MAX];
    int status = mpidata_inbox_take(s->inbox, &s->transfers, &from, did);
    mpidata_inbox_whole(s->inbox, whole);
    if (status == MPIDATA_ERR_DIED) return note_deaths(s);
    if (status != MPIDATA_ERR_WIRE && status != MPIDATA_ERR_MEMORY) return status;
    memcpy(text, mpidata_last_error(), sizeof text);
    mpidata_link_who(&s->link, &s->loader->job.plan, from, who, sizeof who);
    return mpidata_error(status, "%.1500s. %s sent it.%s", text, who,
                         status == MPIDATA_ERR_WIRE ? " Use one build of libmpidata for the whole job." : "");
}

/* Pass to the caller the parcels that have come and left; a caller that waits for requests is not woken for the latter. */
static void hand_over(server *s, mpidata_parcel_list *requests, mpidata_sending_list *sent) {
    mpidata_loader *loader = s->loader;
    const int has_come = requests->first != NULL;
    if (!has_come && !sent->first) return;
    mpidata_lock_take(&loader->lock);
    for (mpidata_parcel *request; (request = mpidata_parcels_pop(requests));) {
        if (request->head.kind == MPIDATA_PARCEL_FAREWELL && is_loader(loader)) {
            char *trainer = &loader->trainers[request->peer];
            if (*trainer == MPIDATA_TRAINER_ASKS) *trainer = MPIDATA_TRAINER_SAID_FAREWELL;
            mpidata_parcel_free(request);
        } else
            mpidata_parcels_append(&loader->requests, request);
    }
    for (mpidata_sending *answer; (answer = mpidata_sendings_pop(sent)); loader->under_way--)
        if (answer->ticket < 0)
            mpidata_sending_free(answer);
        else
            mpidata_sendings_append(&loader->sent, answer);
    if (has_come || !loader->under_way) mpidata_lock_tell_locked(&loader->lock, &loader->news);
    mpidata_lock_give(&loader->lock);
}

static int one_round(server *s, int *did) {
    mpidata_parcel_list requests = {0};
    mpidata_sending_list sent = {0};
    MPIDATA_TRY(listen(s));
    MPIDATA_TRY(mpidata_transfers_test(&s->transfers, did));
    int status = take_requests(s, &requests, did);
    if (!status) status = send_answers(s, did);
    mpidata_sendings_move_ended(&s->sending, &sent);
    hand_over(s, &requests, &sent);
    return status;
}

/* Returns whether the thread must end. */
static int pause_until_woken(mpidata_loader *loader, long sleep_ns) {
    double deadline = mpidata_now() + 1e-9 * (double)sleep_ns;
    mpidata_lock_take(&loader->lock);
    if (!loader->woken && sleep_ns) (void)mpidata_lock_sleep_locked(&loader->lock, &loader->wake, deadline);
    loader->woken = 0;
    int quit = loader->quit;
    mpidata_lock_give(&loader->lock);
    if (!sleep_ns) (void)sched_yield();
    return quit;
}

static long next_pause(server *s, mpidata_backoff *backoff) {
    return atomic_load(&s->moving) ? mpidata_backoff_next(backoff) : mpidata_backoff_next_patient(backoff);
}

static int make(mpidata_loader *loader, int (*part)(server *, int *), int *did) {
    mpidata_lock_take(&loader->rounds);
    const int status = part(loader->server, did);
    atomic_store(&loader->server->moving, loader->server->transfers.n);
    mpidata_lock_give(&loader->rounds);
    if (!status || status == MPIDATA_ERR_DIED) return status;
    mpidata_lock_take(&loader->lock);
    loader->error = status;
    memcpy(loader->error_text, mpidata_last_error(), sizeof loader->error_text);
    mpidata_lock_tell_locked(&loader->lock, &loader->news);
    mpidata_lock_give(&loader->lock);
    return status;
}

int mpidata_loader_round(mpidata_loader *loader, int *did) { return make(loader, one_round, did); }

int mpidata_loader_send(mpidata_loader *loader) {
    int did = 0;
    return make(loader, send_answers, &did);
}

static void serve(mpidata_loader *loader) {
    mpidata_backoff backoff = {0};
    int status = MPIDATA_SUCCESS, quit = 0;
    while (!status && !quit) {
        int did = 0;
        const int driven = atomic_load(&loader->driven);
        if (!driven) status = mpidata_loader_round(loader, &did);
        if (did)
            backoff = (mpidata_backoff){0};
        else if (driven)
            quit = pause_until_woken(loader, DRIVEN_NS);
        else
            quit = pause_until_woken(loader, next_pause(loader->server, &backoff));
    }
    if (status == MPIDATA_ERR_DIED) mpidata_job_end_rank();
}

void *mpidata_loader_thread(void *argument) {
    MPIDATA_CALLED;
    /* Short sleeps must be exact: the kernel's default slack of 50 us would double them. */
    (void)prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
    serve(argument);
    return NULL;
}
