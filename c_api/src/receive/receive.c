#include "receive/receive.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/deadlines.h"
#include "base/wait.h"
#include "job/run_files.h"
#include "program/caller.h"
#include "receive/giving/lanes.h"
#include "receive/incoming/received_constants.h"
#include "receive/incoming/state.h"
#include "receive/parcels.h"
#include "receive/answering/relay.h"
#include "receive/answering/publishing.h"
#include "receive/replay.h"
#include "receive/completion.h"
#include "stream/agreement.h"
#include "stream/checkpoint.h"
#include "stream/deaths/adoption.h"
#include "stream/giving/giving.h"
#include "stream/progress.h"

static const double STATUS_EVERY_S = 1e-3 * (double)MPIDATA_STATUS_EVERY_MS;

/* While samples come, interval between checks for anything else. A call of MPI that finds nothing may yield the core. */
static const double LOOK_EVERY_S = 1e-3;

/* A caller that holds the thread briefly waits for other trainers; if one of them hangs, the scheduler must learn of it. */
static const double HELD_AT_MOST_S = 1.0;

typedef struct {
    mpidata_trainer *trainer;
    mpidata_incoming incoming;
    mpidata_parcel_traffic parcels;
    mpidata_relay relay;
    mpidata_publishing publishing;
    mpidata_lanes lanes;
    mpidata_agreement agreement;
    mpidata_outgoing *sending;
    MPI_Request send_request;
    double next_status, next_look;
} receiver;

/* Wake a draw that can continue. With several trainers the agreement does so, unless one has started late. */
static void tell_drawer_locked(mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    int final;
    const int alone = trainer->journal.replayed || trainer->giving.phase != MPIDATA_KEEPS;
    if (!trainer->waiting || (trainer->job.plan.trainers > 1 && !alone)) return;
    if (alone || mpidata_trainer_guaranteed_locked(trainer, &final) > trainer->drawn || final)
        mpidata_lock_tell_locked(&trainer->lock, &trainer->news);
}

static int all_received_locked(const receiver *r) {
    MPIDATA_LOCKED(&r->trainer->lock);
    return r->trainer->end_of_stream && r->incoming.assemblies.count == r->incoming.assemblies.lost && !r->trainer->giving.coming;
}

static int fill_as_replayed_locked(receiver *r, int *did) {
    MPIDATA_LOCKED(&r->trainer->lock);
    int64_t n = 0;
    if (mpidata_stopping(&r->trainer->phase)) return MPIDATA_SUCCESS;
    MPIDATA_TRY(mpidata_replay_fill_locked(r->trainer, all_received_locked(r), &n));
    if (n) *did = 1;
    if (n) tell_drawer_locked(r->trainer);
    return MPIDATA_SUCCESS;
}

/* Hand over the samples for which the buffer has room. */
static int fill_buffer_locked(receiver *r, int *did) {
    MPIDATA_LOCKED(&r->trainer->lock);
    mpidata_trainer *trainer = r->trainer;
    int64_t n;
    if (trainer->journal.replayed) return fill_as_replayed_locked(r, did);
    if (trainer->adoption.n_trained) MPIDATA_TRY(mpidata_enter_trained_locked(trainer));
    MPIDATA_TRY(mpidata_trainer_fill_buffer_locked(trainer, &n));
    if (n) *did = 1;
    if (!trainer->buffer.ended && !trainer->n_arrived && all_received_locked(r)) {
        MPIDATA_TRY(mpidata_journal_note(&trainer->journal, MPIDATA_JOURNAL_END, 0));
        if (trainer->windows.plan) mpidata_windows_drop_all(&trainer->windows);
        if (trainer->job.plan.n_constants) mpidata_end_constants_locked(&r->incoming);
        mpidata_buffer_end(&trainer->buffer);
        n = 1;
    }
    if (n) tell_drawer_locked(trainer);
    return MPIDATA_SUCCESS;
}

/* Start to make calls of MPI, but not while a caller holds this thread. */
static void begin_round(mpidata_trainer *trainer) {
    if (!trainer->job.plan.trainers_at_least) return;
    const double until = mpidata_now() + HELD_AT_MOST_S;
    mpidata_lock_take(&trainer->lock);
    while (trainer->held && !trainer->joins && mpidata_lock_sleep_locked(&trainer->lock, &trainer->wake, until)) continue;
    trainer->in_round = 1;
    mpidata_lock_give(&trainer->lock);
}

static void end_round(mpidata_trainer *trainer) {
    if (!trainer->job.plan.trainers_at_least) return;
    mpidata_lock_take(&trainer->lock);
    trainer->in_round = 0;
    if (trainer->held) mpidata_lock_tell_locked(&trainer->lock, &trainer->news);
    mpidata_lock_give(&trainer->lock);
}

/* -- scheduler ------------------------------------------------------------------------------------------------------ */

static int obey_locked(receiver *r, const mpidata_order *order) {
    MPIDATA_LOCKED(&r->trainer->lock);
    mpidata_trainer *trainer = r->trainer;
    switch (order->kind) {
    case MPIDATA_ORDER_EXPECT:
        mpidata_ledger_expect(&trainer->ledger, order->expect.simulation, order->expect.steps);
        trainer->ledger.entries[order->expect.simulation].expected_by = order->expect.by_try;
        return mpidata_held_locked(trainer, order->expect.simulation);
    case MPIDATA_ORDER_VALIDATION:
        trainer->validation_whole = 1;
        mpidata_lock_tell_locked(&trainer->lock, &trainer->news);
        return MPIDATA_SUCCESS;
    case MPIDATA_ORDER_END_OF_STREAM: trainer->end_of_stream = 1; return MPIDATA_SUCCESS;
    case MPIDATA_ORDER_TRAINER_LOST:
    case MPIDATA_ORDER_TRAINER_JOINED:
        mpidata_note_change_locked(trainer, mpidata_change_code(order->of_trainer.trainer, order->kind == MPIDATA_ORDER_TRAINER_JOINED));
        return MPIDATA_SUCCESS;
    case MPIDATA_ORDER_HANDS_OVER: return mpidata_note_giver_locked(trainer, order->of_trainer.trainer);
    case MPIDATA_ORDER_STOP:
        mpidata_phase_stop_locked(&trainer->phase);
        trainer->n_arrived = 0;
        mpidata_lock_tell_locked(&trainer->lock, &trainer->news);
        return MPIDATA_SUCCESS;
    case MPIDATA_ORDER_RELIEVE:
        if (!mpidata_buffer_grow(&trainer->buffer, trainer->buffer.capacity + order->relieve.samples)) return MPIDATA_SUCCESS;
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a buffer of %lld samples. Lower buffer.capacity.",
                             (long long)(trainer->buffer.capacity + order->relieve.samples));
    case MPIDATA_ORDER_CHECKPOINT: mpidata_checkpoint_want_locked(trainer, order->checkpoint.number); return MPIDATA_SUCCESS;
    case MPIDATA_ORDER_TRAINERS:
        if (order->trainers.number <= trainer->trainers_order) return MPIDATA_SUCCESS;
        trainer->trainers_order = order->trainers.number;
        trainer->trainers_wanted = order->trainers.count;
        return MPIDATA_SUCCESS;
    case MPIDATA_ORDER_ALL_GONE:
        mpidata_phase_all_gone_locked(&trainer->phase);
        mpidata_lock_tell_locked(&trainer->lock, &trainer->news);
        return MPIDATA_SUCCESS;
    default: return MPIDATA_SUCCESS;
    }
}

/* If trainers may die, their scripts make no communicators from here until the order to join, or to dismiss. */
static int prepare(mpidata_trainer *trainer, int role, int group) {
    mpidata_event event = {.kind = MPIDATA_EVENT_READY, .ready = {role, group, MPIDATA_ANSWER_READY}};
    mpidata_lock_take(&trainer->lock);
    if (trainer->job.plan.trainers_at_least && !(trainer->joins = !trainer->alone)) event.ready.answer = MPIDATA_ANSWER_BUSY;
    int status = mpidata_trainer_post_locked(trainer, &event);
    mpidata_lock_give(&trainer->lock);
    return status;
}

/* `answer`: to the order, 0 for none. */
static int let_script_go_on(mpidata_trainer *trainer, int role, int group, int answer) {
    mpidata_event event = {.kind = MPIDATA_EVENT_READY, .ready = {role, group, answer}};
    mpidata_lock_take(&trainer->lock);
    trainer->joins = 0;
    mpidata_lock_tell_locked(&trainer->lock, &trainer->news);
    int status = answer ? mpidata_trainer_post_locked(trainer, &event) : MPIDATA_SUCCESS;
    mpidata_lock_give(&trainer->lock);
    return status;
}

static int join(receiver *r, const mpidata_order *order) {
    mpidata_job *job = &r->trainer->job;
    MPI_Comm comm = MPI_COMM_NULL;
    const int role = order->of_group.role, group = order->of_group.group, members = order->of_group.members;
    int status = members ? mpidata_hub_renew_as_trainer(&job->hub, members, order->of_group.place) : MPIDATA_SUCCESS;
    if (!status) status = mpidata_job_join_group(job, MPI_COMM_NULL, &comm);
    const int failed = status;
    if (failed && job->plan.trainers_at_least) MPIDATA_TRY(mpidata_hub_let_others_be_made());
    if (!status) status = mpidata_incoming_add(&r->incoming, comm, role, group);
    if (!job->plan.trainers_at_least || (status && !failed)) return status;
    return let_script_go_on(r->trainer, role, group, failed ? MPIDATA_ANSWER_FAILED : MPIDATA_ANSWER_JOINED);
}

/* Orders about groups and loaders, and the simulations of groups; returns 0 for other orders. Not under the lock. */
static int obey_for_group(receiver *r, const mpidata_order *order, int *status) {
    int group = order->of_group.group, role = order->of_group.role; /* only valid for these */
    *status = MPIDATA_SUCCESS;
    switch (order->kind) {
    case MPIDATA_ORDER_PREPARE: *status = prepare(r->trainer, role, group); return 1;
    case MPIDATA_ORDER_JOIN: *status = join(r, order); return 1;
    case MPIDATA_ORDER_DISMISS:
        *status = let_script_go_on(r->trainer, role, group, 0);
        if (!*status) *status = mpidata_incoming_lose(&r->incoming, role, group);
        return 1;
    case MPIDATA_ORDER_SERVES: *status = mpidata_parcel_news(&r->parcels, group, MPIDATA_LOADER_JOINED, ""); return 1;
    case MPIDATA_ORDER_RETIRES: *status = mpidata_parcel_retire(&r->parcels, group); return 1;
    case MPIDATA_ORDER_RESTS: *status = mpidata_parcel_news(&r->parcels, group, MPIDATA_LOADER_RESTS, ""); return 1;
    case MPIDATA_ORDER_CANCEL:
        *status = mpidata_incoming_cancel(&r->incoming, order->cancel.simulation, order->cancel.group, order->cancel.closed);
        return 1;
    case MPIDATA_ORDER_LOST:
    case MPIDATA_ORDER_GONE:
        mpidata_relay_lose(&r->relay, role, group);
        if (role == MPIDATA_ROLE_LOADER)
            *status = mpidata_parcel_news(&r->parcels, group, MPIDATA_LOADER_LOST, order->of_group.at);
        mpidata_publishing_forget(&r->publishing, role, group);
        if (order->kind == MPIDATA_ORDER_GONE)
            mpidata_incoming_gone(&r->incoming, role, group);
        else if (!*status)
            *status = mpidata_incoming_lose(&r->incoming, role, group);
        return 1;
    default: return 0;
    }
}

static int take_orders(receiver *r, int *did) {
    for (;;) {
        int here = 0, bytes = 0, result;
        MPI_Message message;
        MPI_Status status;
        mpidata_order order = {0};
        MPIDATA_TRY_MPI(MPI_Improbe(0, MPIDATA_TAG_ORDER, r->trainer->job.data, &here, &message, &status));
        if (!here) return MPIDATA_SUCCESS;
        *did = 1;
        MPIDATA_TRY_MPI(MPI_Get_count(&status, MPI_BYTE, &bytes));
        MPIDATA_TRY_MPI(MPI_Mrecv(&order, (int)sizeof order, MPI_BYTE, &message, MPI_STATUS_IGNORE));
        MPIDATA_TRY(mpidata_order_check(&r->trainer->job.plan, &order, bytes));
        if (!obey_for_group(r, &order, &result)) {
            mpidata_lock_take(&r->trainer->lock);
            result = obey_locked(r, &order);
            mpidata_lock_give(&r->trainer->lock);
        }
        MPIDATA_TRY(result);
    }
}

static int post_status(receiver *r) {
    mpidata_trainer *trainer = r->trainer;
    double now = mpidata_now();
    if (now < r->next_status) return MPIDATA_SUCCESS;
    r->next_status = now + STATUS_EVERY_S;
    mpidata_lock_take(&trainer->lock);
    int status = mpidata_trainer_post_status_locked(trainer);
    if (!status) status = mpidata_journal_flush(&trainer->journal);
    mpidata_lock_give(&trainer->lock);
    return status;
}

static int send_events(receiver *r, int *did) {
    mpidata_trainer *trainer = r->trainer;
    for (;;) {
        if (r->sending) {
            int done = 0;
            MPIDATA_TRY_MPI(MPI_Test(&r->send_request, &done, MPI_STATUS_IGNORE));
            if (!done) return MPIDATA_SUCCESS;
            free(r->sending);
            *did = 1;
        }
        mpidata_lock_take(&trainer->lock);
        r->sending = trainer->outbox;
        if (r->sending && !(trainer->outbox = r->sending->next)) trainer->outbox_end = &trainer->outbox;
        mpidata_lock_give(&trainer->lock);
        if (!r->sending) return MPIDATA_SUCCESS;
        MPIDATA_TRY_MPI(MPI_Isend(&r->sending->event, (int)mpidata_event_bytes(&r->sending->event), MPI_BYTE, 0,
                                  MPIDATA_TAG_EVENT, trainer->job.data, &r->send_request));
    }
}

/* -- thread --------------------------------------------------------------------------------------------------------- */

/* Without samples, the checks for anything else let MPI receive messages that the next probe finds: a probe only finds
 * messages that came before it. */
static int one_round(receiver *r, int *did, int *sent) {
    double now = mpidata_now();
    if (now >= r->next_look) {
        r->next_look = now + LOOK_EVERY_S;
        MPIDATA_TRY(take_orders(r, did));
        MPIDATA_TRY(mpidata_incoming_validation(&r->incoming, did));
    }
    int samples = 0; /* or parcels */
    if (r->trainer->job.plan.loaders) MPIDATA_TRY(mpidata_parcel_round(&r->parcels, &samples));
    if (r->trainer->job.plan.inference) MPIDATA_TRY(mpidata_relay_round(&r->relay, &samples));
    MPIDATA_TRY(mpidata_publishing_round(&r->publishing, did));
    MPIDATA_TRY(mpidata_incoming_take(&r->incoming, &samples));
    MPIDATA_TRY(mpidata_lanes_round(&r->lanes, &samples));
    if (samples)
        *did = 1;
    else
        r->next_look = 0.0;
    mpidata_lock_take(&r->trainer->lock);
    int status = fill_buffer_locked(r, did);
    mpidata_lock_give(&r->trainer->lock);
    MPIDATA_TRY(status);
    MPIDATA_TRY(mpidata_agree(r->trainer, &r->agreement, did));
    MPIDATA_TRY(post_status(r));
    return send_events(r, sent);
}

/* Operations in flight are checked again soon, because trainers that agree, or hand over samples, wait for one another. */
static long next_pause(const receiver *r, mpidata_backoff *backoff) {
    const int busy = mpidata_incoming_busy(&r->incoming) || r->agreement.under_way || r->sending || r->lanes.lanes;
    return busy ? mpidata_backoff_next(backoff) : mpidata_backoff_next_patient(backoff);
}

static void pause_until_woken(mpidata_trainer *trainer, long sleep_ns) {
    double deadline = mpidata_now() + 1e-9 * (double)sleep_ns;
    mpidata_lock_take(&trainer->lock);
    if (!trainer->woken) (void)mpidata_lock_sleep_locked(&trainer->lock, &trainer->wake, deadline);
    trainer->woken = 0;
    mpidata_lock_give(&trainer->lock);
}

/* Memory that MPI still reads or writes stays until the process ends. */
static void close_receiver(receiver *r) {
    int busy = mpidata_parcel_traffic_close(&r->parcels) | mpidata_relay_close(&r->relay) | mpidata_lanes_close(&r->lanes) |
               mpidata_publishing_close(&r->publishing);
    r->trainer->slots_in_use = busy || mpidata_incoming_busy(&r->incoming);
    if (!r->trainer->slots_in_use) mpidata_incoming_close(&r->incoming);
    if (!r->agreement.under_way) mpidata_agreement_close(&r->agreement);
    if (!r->trainer->slots_in_use && !r->agreement.under_way) free(r);
}

/* Make the sentence on who has died; if it was the scheduler, also for the other ranks. */
static int name_the_dead(receiver *r) {
    const mpidata_link *link = &r->incoming.inlets[0]->link;
    const mpidata_plan *plan = &r->trainer->job.plan;
    char who[128] = "A rank of the job", path[4096];
    (void)mpidata_link_deaths(&r->incoming.inlets[0]->link);
    if (link->dead[0]) {
        FILE *file = snprintf(path, sizeof path, "%s/" MPIDATA_RUN_OVER, plan->run) < (int)sizeof path ? fopen(path, "ae") : NULL;
        if (file) (void)fclose(file);
        return mpidata_job_scheduler_gone(plan);
    }
    for (int rank = plan->trainers; rank > 0; rank--)
        if (link->dead[rank]) mpidata_link_who(link, plan, rank, who, sizeof who);
    return mpidata_error(MPIDATA_ERR_DIED, "%s has died. Resume the job with `mpidata run --resume %s`.", who, plan->run);
}

/* After an error: report it to the scheduler, then only send queued messages until the job is ended. */
static void serve_failed(receiver *r, int status) {
    mpidata_trainer *trainer = r->trainer;
    if (status == MPIDATA_ERR_DIED) status = name_the_dead(r);
    mpidata_lock_take(&trainer->lock);
    mpidata_trainer_fail_locked(trainer, status);
    mpidata_lock_give(&trainer->lock);
    for (int did = 0; !mpidata_all_gone(&trainer->phase) && !send_events(r, &did) && !take_orders(r, &did);)
        pause_until_woken(trainer, 1000000);
}

static void receive(receiver *r) {
    mpidata_trainer *trainer = r->trainer;
    mpidata_backoff backoff = {0};
    int status = mpidata_incoming_open(&r->incoming, trainer);
    while (!status && !mpidata_all_gone(&trainer->phase)) {
        int did = 0, sent = 0;
        begin_round(trainer);
        status = one_round(r, &did, &sent);
        end_round(trainer);
        if (did) backoff = (mpidata_backoff){0}; /* but not for a sent status, of which there are five per second */
        if (did || sent) continue;
        const long sleep_ns = next_pause(r, &backoff);
        if (sleep_ns)
            pause_until_woken(trainer, sleep_ns);
        else
            (void)sched_yield();
    }
    if (status) serve_failed(r, status);
    close_receiver(r);
}

/* Not on the thread's stack: MPI may still write to it when the thread has ended. */
static receiver *new_receiver(mpidata_trainer *trainer) {
    receiver *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->trainer = r->parcels.trainer = r->lanes.trainer = r->publishing.trainer = trainer;
    r->parcels.in = r->relay.in = r->publishing.in = &r->incoming;
    return r;
}

void *mpidata_receive_thread(void *argument) {
    MPIDATA_CALLED;
    mpidata_trainer *trainer = argument;
    /* Short sleeps must be exact: the kernel's default slack of 50 us would double them. */
    (void)prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
    receiver *r = new_receiver(trainer);
    if (r) receive(r);
    mpidata_lock_take(&trainer->lock);
    if (!r) {
        (void)mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory in the trainer's receive thread.");
        mpidata_trainer_fail_locked(trainer, MPIDATA_ERR_MEMORY);
    }
    trainer->joins = 0;
    mpidata_phase_done_locked(&trainer->phase);
    mpidata_lock_tell_locked(&trainer->lock, &trainer->news);
    mpidata_lock_give(&trainer->lock);
    return NULL;
}
