#include "stream/agreement.h"

#include <stdlib.h>
#include <string.h>

#include "base/wait.h"
#include "job/failure.h"
#include "stream/budget.h"
#include "stream/checkpoint.h"
#include "stream/deaths/adoption.h"
#include "stream/giving/giving.h"
#include "stream/progress.h"
#include "stream/shares/shares.h"
#include "stream/shares/sizes.h"

enum { LEAST = 0, TOTAL, NOT_ENDED, STOP, BATCH, MINUS_BATCH, NO_MORE, CHECKPOINT, STUCK, NOT_ASKING, DRAWN, GRANTED, GIVING, GIVERS,
       MINUS_GIVERS, AGREED, AT, ANEW, TAKES };

/* Interval between agreements while training is ahead of its budget. */
static const double AGAIN_S = 2e-3;

/* Time for operations in a revoked communicator to end, which they do immediately. */
static const double ENDS_WITHIN_S = 5.0;

static int64_t total_with_repeats_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    int64_t have_any = trainer->buffer.count + trainer->n_retired;
    return have_any ? trainer->drawn + mpidata_batches_needed_locked(trainer, trainer->buffer.count) : 0;
}

static void my_part_of_checkpoints_locked(mpidata_trainer *trainer, int64_t *mine) {
    MPIDATA_LOCKED(&trainer->lock);
    mpidata_checkpoint *checkpoint = &trainer->checkpoint;
    mine[CHECKPOINT] = checkpoint->wanted;
    mine[AGREED] = checkpoint->agreed;
    mine[AT] = checkpoint->at;
    mine[TAKES] = checkpoint->due;
    mine[DRAWN] = trainer->drawn;
    checkpoint->asking = mpidata_checkpoint_asks_locked(trainer);
    mine[NOT_ASKING] = !checkpoint->asking && !checkpoint->joining && trainer->giving.phase == MPIDATA_KEEPS;
}

/* Without a stream nothing is granted: trainers proceed freely, and take a checkpoint at the batch of the furthest. */
static int my_part_without_stream_locked(mpidata_trainer *trainer, int64_t *mine) {
    MPIDATA_LOCKED(&trainer->lock);
    int stop = mpidata_draws_left(&trainer->phase) || mpidata_stopping(&trainer->phase);
    if (!stop && !mpidata_checkpoint_asks_locked(trainer) && !trainer->checkpoint.again) return 0;
    memset(mine, 0, MPIDATA_AGREEMENT_ENTRIES * sizeof *mine);
    mine[STOP] = stop;
    my_part_of_checkpoints_locked(trainer, mine);
    return 1;
}

/* A trainer that gives takes part in no checkpoint; at the end nothing new is agreed on. */
static void conclude_checkpoint_locked(mpidata_trainer *trainer, const int64_t *all, int over) {
    MPIDATA_LOCKED(&trainer->lock);
    const mpidata_said said = {.ordered = all[STOP] ? all[AGREED] : all[CHECKPOINT], .agreed = all[AGREED], .at = all[AT],
                               .drawn = all[DRAWN], .takes = all[TAKES] != 0, .unaware = all[NOT_ASKING] != 0,
                               .granted = trainer->granted, .over = over};
    trainer->checkpoint.again = 0;
    if (trainer->giving.phase == MPIDATA_KEEPS) {
        mpidata_checkpoint_follow_locked(trainer, &said);
    } else {
        trainer->checkpoint.asking = 0;
        mpidata_checkpoint_want_locked(trainer, all[CHECKPOINT]);
    }
}

static int conclude_without_stream_locked(mpidata_trainer *trainer, const int64_t *all) {
    MPIDATA_LOCKED(&trainer->lock);
    conclude_checkpoint_locked(trainer, all, 0);
    if (all[STOP]) mpidata_phase_cut_short_locked(&trainer->phase);
    mpidata_lock_tell_locked(&trainer->lock, &trainer->news);
    return all[STOP] != 0;
}

/* Nothing ends while a trainer may still give samples away, or before all trainers that draw know of all that give. */
static void my_part_in_giving_locked(const mpidata_trainer *trainer, int64_t *mine) {
    MPIDATA_LOCKED(&trainer->lock);
    mine[GIVING] = mpidata_is_idle_locked(trainer) && trainer->giving.phase != MPIDATA_GAVE;
    mine[GIVERS] = trainer->giving.n_givers;
    mine[MINUS_GIVERS] = mpidata_gives(trainer) ? INT64_MIN / 2 : -trainer->giving.n_givers;
}

/* How batches are made, which must be the same on all. */
static void my_part_of_batches_locked(const mpidata_trainer *trainer, int64_t *mine) {
    MPIDATA_LOCKED(&trainer->lock);
    const int64_t total = trainer->shares.total, batch = total ? 2 * total + 1 : 2 * trainer->batch;
    mine[BATCH] = trainer->batch ? batch : INT64_MIN / 2;
    mine[MINUS_BATCH] = trainer->batch ? -batch : INT64_MIN / 2;
}

/* A trainer that gives limits nobody, and reports this in advance. */
static void my_part_as_giver_locked(const mpidata_trainer *trainer, int stop, int64_t *mine) {
    MPIDATA_LOCKED(&trainer->lock);
    memset(mine, 0, MPIDATA_AGREEMENT_ENTRIES * sizeof *mine);
    mine[LEAST] = -(INT64_MAX / 2);
    mine[STOP] = stop;
    my_part_of_batches_locked(trainer, mine);
    mine[CHECKPOINT] = trainer->checkpoint.wanted;
    my_part_in_giving_locked(trainer, mine);
}

/* Fill in this trainer's part; returns 0 if there is nothing new. */
static int my_part_locked(mpidata_trainer *trainer, int64_t *mine) {
    MPIDATA_LOCKED(&trainer->lock);
    if (trainer->adoption.rests) return 0;
    if (!trainer->job.plan.n_fields) return my_part_without_stream_locked(trainer, mine);
    int final, stop = mpidata_draws_left(&trainer->phase) || mpidata_stopping(&trainer->phase);
    if (mpidata_gives(trainer)) {
        my_part_as_giver_locked(trainer, stop, mine);
        return 1;
    }
    const int wanted = mpidata_checkpoint_asks_locked(trainer);
    int64_t sure = mpidata_trainer_guaranteed_locked(trainer, &final);
    if (mpidata_is_idle_locked(trainer)) final = 0;
    const int greets = trainer->adoption.greets;
    if (!stop && !greets && (!trainer->batch || (!final && !wanted && sure <= trainer->granted))) return 0;
    trainer->adoption.greets = 0;
    int budget = trainer->job.plan.repeats > 0, none = final && sure <= trainer->drawn;
    if (budget && !stop && !wanted && !greets && ((sure <= trainer->granted && !none) || mpidata_now() < trainer->budget.again))
        return 0;
    int repeats = final && !budget && trainer->job.plan.tail == MPIDATA_TAIL_REPEAT;
    int64_t total = repeats ? total_with_repeats_locked(trainer) : sure;
    mine[TOTAL] = total;
    mine[LEAST] = -(repeats && total > 0 ? INT64_MAX / 2 : sure);
    mine[NOT_ENDED] = !final;
    mine[STOP] = stop;
    my_part_of_batches_locked(trainer, mine);
    mine[NO_MORE] = budget ? none : final && !(repeats && total > 0) && sure <= trainer->granted;
    mine[STUCK] = budget && mpidata_budget_stuck_locked(trainer);
    mine[GRANTED] = trainer->granted;
    mine[ANEW] = trainer->shares.anew;
    my_part_in_giving_locked(trainer, mine);
    my_part_of_checkpoints_locked(trainer, mine);
    return 1;
}

/* Whether this is the end. At the end one batch is also granted at a time: a checkpoint comes after the granted batches. */
static int conclude_budget_locked(mpidata_trainer *trainer, const mpidata_agreement *agreement) {
    MPIDATA_LOCKED(&trainer->lock);
    const int64_t *all = agreement->all, received = agreement->received_by_all;
    int allowed = mpidata_budget_limit_locked(trainer, received) > trainer->granted;
    trainer->budget.received = received;
    trainer->budget.said = agreement->received;
    if (!all[NOT_ENDED] && (!allowed || all[NO_MORE])) {
        if (!trainer->shares.number) (void)mpidata_budget_end_locked(trainer, received);
        return 1;
    }
    if (-all[LEAST] > trainer->granted && (allowed || all[STUCK]))
        trainer->granted++;
    else
        trainer->budget.again = mpidata_now() + AGAIN_S;
    return 0;
}

static int batches_differ(const int64_t *all) {
    const int64_t least = -all[MINUS_BATCH], most = all[BATCH];
    if (least >= most) return MPIDATA_SUCCESS; /* greater: none has begun */
    return mpidata_error(MPIDATA_ERR_ARGUMENT,
                         "The trainers draw batches of different sizes (%s%lld and %s%lld). Use the same batch_size, or "
                         "global_batch_size, on all trainers.",
                         least % 2 ? "global " : "", (long long)(least / 2), most % 2 ? "global " : "", (long long)(most / 2));
}

/* Whether this is the end. */
static int conclude_locked(mpidata_trainer *trainer, mpidata_agreement *agreement) {
    MPIDATA_LOCKED(&trainer->lock);
    const int64_t *all = agreement->all;
    if (!trainer->job.plan.n_fields) return conclude_without_stream_locked(trainer, all);
    int64_t least = -all[LEAST];
    const int anew = agreement->first && (trainer->shares.total || all[ANEW]);
    int over = 0, status, given = !all[GIVING] && all[GIVERS] == -all[MINUS_GIVERS];
    if (trainer->adoption.on && all[GRANTED] > trainer->granted) trainer->granted = all[GRANTED]; /* the others knew it before one died */
    if (agreement->first && trainer->living == MPI_COMM_NULL) trainer->shares.changes = trainer->shares.anew = 0; /* else once more */
    agreement->first = 0;
    if (all[STOP]) {
        over = 1;
    } else if ((status = batches_differ(all)) || (anew && (status = mpidata_share_anew_locked(trainer, all[DRAWN])))) {
        mpidata_trainer_fail_locked(trainer, status);
        over = 1;
    } else if (anew) { /* nothing more is granted: their numbers were for the earlier sizes */
        mpidata_scales_go_on(&trainer->scales, trainer->granted);
        over = 0;
    } else if (trainer->job.plan.repeats > 0) {
        over = conclude_budget_locked(trainer, agreement);
    } else if (trainer->job.plan.tail == MPIDATA_TAIL_REPEAT && !all[NOT_ENDED] && given) {
        int64_t total = all[TOTAL] < least ? all[TOTAL] : least;
        if (total > trainer->granted) trainer->granted = total;
        over = 1;
    } else if (least > trainer->granted && least < INT64_MAX / 2) {
        trainer->granted = least;
    } else if (all[NO_MORE] && given) {
        over = 1;
    }
    conclude_checkpoint_locked(trainer, all, over);
    if (all[STOP])
        mpidata_phase_cut_short_locked(&trainer->phase);
    else if (over)
        mpidata_phase_end_draws_locked(&trainer->phase);
    mpidata_lock_tell_locked(&trainer->lock, &trainer->news);
    return over;
}

/* The moments of all are known with the next batch that this agreement grants, or at the end. */
static int conclude_scales_locked(mpidata_trainer *trainer, const mpidata_agreement *agreement, int64_t granted) {
    MPIDATA_LOCKED(&trainer->lock);
    const mpidata_plan *plan = &trainer->job.plan;
    const int n = agreement->trainers;
    if (!agreement->moments) return MPIDATA_SUCCESS;
    const mpidata_moments *of_each = agreement->moments + plan->n_moments;
    if (agreement->last) memcpy(agreement->last, of_each, (size_t)n * (size_t)plan->n_moments * sizeof *of_each);
    if (trainer->granted > granted) MPIDATA_TRY(mpidata_scales_grant(&trainer->scales, plan, of_each, n, granted));
    return agreement->over ? mpidata_scales_grant(&trainer->scales, plan, of_each, n, INT64_MAX - 1) : MPIDATA_SUCCESS;
}

static int reserve_moments(const mpidata_plan *plan, mpidata_agreement *agreement) {
    if (!plan->n_moments || agreement->moments) return MPIDATA_SUCCESS;
    const size_t n = (size_t)plan->n_moments, each = n * (size_t)plan->trainers;
    agreement->trainers = plan->trainers;
    agreement->moments = malloc((n + each) * sizeof *agreement->moments);
    if (plan->trainers_at_least) agreement->last = malloc(each * sizeof *agreement->last);
    if (!agreement->moments || (plan->trainers_at_least && !agreement->last))
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the trainers' statistics.");
    if (agreement->last) mpidata_moments_clear(agreement->last, (int)each);
    return MPIDATA_SUCCESS;
}

void mpidata_agreement_close(mpidata_agreement *agreement) {
    free(agreement->moments);
    free(agreement->last);
}

/* The first living trainer takes over the last known counts of those that are not among the living. Known moments are indexed
 * by rank: from now on by that among the living. One that has just joined has counted nothing. */
static int inherit_moments(mpidata_trainer *trainer, mpidata_agreement *agreement, MPI_Comm living) {
    const int n = trainer->job.plan.n_moments, trainers = trainer->job.plan.trainers;
    MPI_Group before, now;
    int rank, own, status = MPIDATA_SUCCESS;
    MPIDATA_TRY(reserve_moments(&trainer->job.plan, agreement));
    MPIDATA_TRY_MPI(MPI_Comm_rank(living, &own));
    MPIDATA_TRY_MPI(MPI_Comm_group(trainer->agreement, &before));
    MPIDATA_TRY_MPI(MPI_Comm_group(living, &now));
    mpidata_moments *last = malloc((size_t)n * (size_t)trainers * sizeof *last);
    if (!last) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the trainers' statistics.");
    mpidata_moments_clear(last, n * trainers);
    for (int t = 0; t < agreement->trainers && !status; t++) {
        const mpidata_moments *counted = agreement->last + (int64_t)t * n;
        status = mpidata_check_mpi(MPI_Group_translate_ranks(before, 1, &t, now, &rank), "MPI_Group_translate_ranks");
        mpidata_moments_merge(last + (rank == MPI_UNDEFINED ? 0 : (int64_t)rank * n), counted, n);
        if (status || own || rank != MPI_UNDEFINED) continue;
        mpidata_lock_take(&trainer->lock);
        mpidata_moments_merge(trainer->scales.own, counted, n);
        mpidata_lock_give(&trainer->lock);
    }
    free(agreement->last);
    agreement->last = last;
    (void)MPI_Group_free(&before);
    (void)MPI_Group_free(&now);
    return status;
}

/* Continue in the communicator of the living, once there is one. */
static int regroup(mpidata_trainer *trainer, mpidata_agreement *agreement) {
    mpidata_lock_take(&trainer->lock);
    const MPI_Comm living = mpidata_take_living_locked(trainer);
    if (living != MPI_COMM_NULL) { /* an agreement that a death broke may have ended on some */
        trainer->checkpoint.again = !trainer->adoption.on; /* with a stream all greet */
        trainer->checkpoint.asking = trainer->checkpoint.again && mpidata_checkpoint_asks_locked(trainer);
    }
    int status = living == MPI_COMM_NULL ? mpidata_adopt_locked(trainer) : MPIDATA_SUCCESS;
    mpidata_lock_give(&trainer->lock);
    if (status || living == MPI_COMM_NULL) return status;
    MPIDATA_TRY(mpidata_revoke(trainer->agreement));
    double deadline = mpidata_now() + ENDS_WITHIN_S;
    for (int i = 0, done = 0; agreement->under_way && i < MPIDATA_AGREEMENT_CALLS; i += done) {
        done = MPI_Test(&agreement->requests[i], &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done; /* it fails if revoked */
        if (!done && mpidata_now() > deadline)
            return mpidata_error(MPIDATA_ERR_MPI, "An agreement with a dead trainer does not end.");
    }
    if (trainer->job.plan.n_moments) MPIDATA_TRY(inherit_moments(trainer, agreement, living));
    trainer->agreement = living;
    agreement->under_way = agreement->broken = 0;
    agreement->first = 1;
    int trainers, number;
    MPIDATA_TRY_MPI(MPI_Comm_size(living, &trainers));
    MPIDATA_TRY_MPI(MPI_Comm_rank(living, &number));
    agreement->trainers = trainers;
    mpidata_lock_take(&trainer->lock);
    trainer->shares.trainers = trainers;
    trainer->shares.number = number;
    status = mpidata_adopt_locked(trainer);
    trainer->adoption.greets = trainer->adoption.on;
    if (trainer->adoption.on) agreement->over = mpidata_draws_ended(&trainer->phase);
    if (!agreement->over) mpidata_scales_go_on(&trainer->scales, trainer->granted);
    mpidata_lock_tell_locked(&trainer->lock, &trainer->news);
    mpidata_lock_give(&trainer->lock);
    return status;
}

/* As a draw would do; the script of a trainer that gives does not draw. */
static void tell_end_locked(mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    mpidata_phase_tell_end_locked(&trainer->phase);
    mpidata_scales_drawn(&trainer->scales, &trainer->job.plan, INT64_MAX);
    mpidata_lock_tell_locked(&trainer->lock, &trainer->news);
}

static int agree(mpidata_trainer *trainer, mpidata_agreement *agreement, int *did) {
    int several = trainer->job.plan.trainers > 1 && !trainer->job.plan.replay, budget = trainer->job.plan.repeats > 0;
    int n_moments = trainer->job.plan.n_moments;
    if (!agreement->under_way) {
        if (several) MPIDATA_TRY(reserve_moments(&trainer->job.plan, agreement));
        mpidata_lock_take(&trainer->lock);
        int status = mpidata_checkpoint_give_up_locked(trainer);
        int say = several && !agreement->over && my_part_locked(trainer, agreement->mine);
        agreement->received = mpidata_budget_received_locked(trainer);
        if (say && n_moments) memcpy(agreement->moments, trainer->scales.own, (size_t)n_moments * sizeof *agreement->moments);
        mpidata_lock_give(&trainer->lock);
        if (status || !say) return status;
        for (int i = 0; i < MPIDATA_AGREEMENT_CALLS; i++) agreement->requests[i] = MPI_REQUEST_NULL;
        MPIDATA_TRY_MPI(MPI_Iallreduce(agreement->mine, agreement->all, MPIDATA_AGREEMENT_ENTRIES, MPI_INT64_T, MPI_MAX,
                                       trainer->agreement, &agreement->requests[0]));
        if (budget)
            MPIDATA_TRY_MPI(MPI_Iallreduce(&agreement->received, &agreement->received_by_all, 1, MPI_INT64_T, MPI_SUM,
                                           trainer->agreement, &agreement->requests[1]));
        if (n_moments)
            MPIDATA_TRY_MPI(MPI_Iallgather(agreement->moments, n_moments * MPIDATA_MOMENTS_NUMBERS, MPI_DOUBLE,
                                           agreement->moments + n_moments, n_moments * MPIDATA_MOMENTS_NUMBERS, MPI_DOUBLE,
                                           trainer->agreement, &agreement->requests[2]));
        agreement->under_way = 1;
        *did = 1;
    }
    int done = 1;
    for (int i = 0; i < MPIDATA_AGREEMENT_CALLS && done; i++)
        MPIDATA_TRY_MPI(MPI_Test(&agreement->requests[i], &done, MPI_STATUS_IGNORE));
    if (!done) return MPIDATA_SUCCESS;
    agreement->under_way = 0;
    *did = 1;
    mpidata_lock_take(&trainer->lock);
    int64_t granted = trainer->granted;
    agreement->over = conclude_locked(trainer, agreement);
    int status = conclude_scales_locked(trainer, agreement, granted);
    if (agreement->over && mpidata_gives(trainer)) tell_end_locked(trainer);
    mpidata_lock_give(&trainer->lock);
    return status;
}

int mpidata_agree(mpidata_trainer *trainer, mpidata_agreement *agreement, int *did) {
    const int elastic = trainer->job.plan.trainers_at_least > 0;
    if (elastic) MPIDATA_TRY(regroup(trainer, agreement));
    if (agreement->broken) return MPIDATA_SUCCESS;
    int status = agree(trainer, agreement, did);
    agreement->broken = elastic && (status == MPIDATA_ERR_DIED || status == MPIDATA_ERR_MPI);
    return agreement->broken ? MPIDATA_SUCCESS : status;
}
