#include "receive/giving/lanes.h"

#include <stdlib.h>

#include "receive/giving/handed.h"
#include "stream/progress.h"

/* -- giving --------------------------------------------------------------------------------------------------------- */

static int free_sent(mpidata_lane *lane, int *did) {
    int done = 0;
    if (!lane->message) return MPIDATA_SUCCESS;
    MPIDATA_TRY_MPI(MPI_Test(&lane->request, &done, MPI_STATUS_IGNORE));
    if (!done) return MPIDATA_SUCCESS;
    free(lane->message);
    lane->message = NULL;
    *did = 1;
    return MPIDATA_SUCCESS;
}

static int send(mpidata_lanes *lanes, int to, int64_t *message, int64_t words) {
    mpidata_lane *lane = &lanes->lanes[to];
    if (!message) return MPIDATA_ERR_MEMORY;
    lane->message = message;
    MPIDATA_TRY_MPI(MPI_Issend(message, (int)words, MPI_INT64_T, to, MPIDATA_TAG_HANDED, lanes->trainer->agreement,
                               &lane->request));
    return MPIDATA_SUCCESS;
}

/* The trainer that has got the fewest; -1: such a one has not taken its last one in yet. */
static int next_taker_locked(const mpidata_lanes *lanes) {
    MPIDATA_LOCKED(&lanes->trainer->lock);
    int to = -1;
    for (int t = 0; t < lanes->trainer->job.plan.trainers; t++)
        if (!lanes->trainer->giving.givers[t] && (to < 0 || lanes->lanes[t].handed < lanes->lanes[to].handed)) to = t;
    return to >= 0 && !lanes->lanes[to].message ? to : -1;
}

static void advance_locked(mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    mpidata_giving *giving = &trainer->giving;
    if (giving->phase != MPIDATA_GIVES) return;
    if (giving->asked)
        giving->phase = MPIDATA_DRAWS_LATE;
    else if (trainer->buffer.ended && !trainer->buffer.count)
        giving->phase = MPIDATA_GAVE;
}

/* The number of a sample that leaves now, and to whom; -1: none. */
static int64_t take_next(mpidata_lanes *lanes, int *to) {
    mpidata_trainer *trainer = lanes->trainer;
    int64_t number = -1;
    mpidata_lock_take(&trainer->lock);
    advance_locked(trainer);
    const int gives = trainer->giving.phase == MPIDATA_GIVES && trainer->buffer.count > 0;
    *to = gives ? next_taker_locked(lanes) : -1;
    if (*to >= 0) {
        number = mpidata_buffer_take_out(&trainer->buffer);
        trainer->by_draws[0]--;
        lanes->lanes[*to].handed++;
    }
    mpidata_lock_give(&trainer->lock);
    return number;
}

static int give(mpidata_lanes *lanes, int *did) {
    mpidata_trainer *trainer = lanes->trainer;
    int to;
    for (int64_t number; (number = take_next(lanes, &to)) >= 0;) {
        int64_t words;
        int64_t *message = mpidata_handed_pack(&trainer->slots, trainer->slots.slots[number], &words);
        mpidata_lock_take(&trainer->lock);
        mpidata_trainer_give_back_locked(trainer, number);
        mpidata_lock_give(&trainer->lock);
        MPIDATA_TRY(send(lanes, to, message, words));
        *did = 1;
    }
    return MPIDATA_SUCCESS;
}

/* Report to those that wait for more that none comes: to all at the end, or to one that now gives itself. */
static int tell_no_more(mpidata_lanes *lanes) {
    mpidata_giving *giving = &lanes->trainer->giving;
    for (int t = 0; t < lanes->trainer->job.plan.trainers; t++) {
        if (!giving->owed[t] || lanes->lanes[t].message || (giving->phase == MPIDATA_GIVES && !giving->givers[t])) continue;
        giving->owed[t] = 0;
        MPIDATA_TRY(send(lanes, t, mpidata_handed_pack_no_more(), MPIDATA_HANDED_NO_MORE_WORDS));
    }
    return MPIDATA_SUCCESS;
}

/* -- taking --------------------------------------------------------------------------------------------------------- */

static int has_room(mpidata_trainer *trainer) {
    mpidata_lock_take(&trainer->lock);
    const int room = mpidata_stopping(&trainer->phase) || (!trainer->n_arrived && !mpidata_buffer_full(&trainer->buffer));
    mpidata_lock_give(&trainer->lock);
    return room;
}

/* Enter it as if it had arrived, except that it counts where it arrived. */
static int enter_locked(mpidata_trainer *trainer, const int64_t *message) {
    MPIDATA_LOCKED(&trainer->lock);
    if (mpidata_stopping(&trainer->phase)) return MPIDATA_SUCCESS;
    const int64_t number = mpidata_slots_take(&trainer->slots, -1);
    if (number < 0)
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a sample of %zu bytes. Lower buffer.capacity.",
                             trainer->job.plan.slot_bytes);
    MPIDATA_TRY(mpidata_handed_unpack(&trainer->slots, message, trainer->slots.slots[number]));
    mpidata_trainer_count_draws_locked(trainer, number);
    trainer->giving.taken++;
    return mpidata_slots_append(&trainer->arrived, &trainer->n_arrived, &trainer->arrived_allocated, number);
}

static int take_whole(mpidata_lanes *lanes) {
    mpidata_trainer *trainer = lanes->trainer;
    const mpidata_handed_head *head;
    int status = mpidata_handed_check(&trainer->job.plan, lanes->message, lanes->words, &head);
    mpidata_lock_take(&trainer->lock);
    if (!status && head->simulation >= 0)
        status = enter_locked(trainer, lanes->message);
    else if (!status)
        trainer->giving.coming--;
    mpidata_lock_give(&trainer->lock);
    free(lanes->message);
    lanes->message = NULL;
    return status;
}

static int begin_to_take(mpidata_lanes *lanes, int *here) {
    int words = 0;
    MPI_Message message;
    MPI_Status status;
    MPIDATA_TRY_MPI(MPI_Improbe(MPI_ANY_SOURCE, MPIDATA_TAG_HANDED, lanes->trainer->agreement, here, &message, &status));
    if (!*here) return MPIDATA_SUCCESS;
    MPIDATA_TRY_MPI(MPI_Get_count(&status, MPI_INT64_T, &words));
    lanes->words = words > 0 ? words : 0;
    lanes->message = malloc((size_t)(lanes->words + 1) * sizeof *lanes->message);
    if (!lanes->message) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory: %d words for a message", words);
    MPIDATA_TRY_MPI(MPI_Imrecv(lanes->message, (int)lanes->words, MPI_INT64_T, &message, &lanes->request));
    return MPIDATA_SUCCESS;
}

static int take(mpidata_lanes *lanes, int *did) {
    while (lanes->trainer->giving.coming) {
        int here = 1, done = 0;
        if (!lanes->message && !has_room(lanes->trainer)) break;
        if (!lanes->message) MPIDATA_TRY(begin_to_take(lanes, &here));
        if (here) MPIDATA_TRY_MPI(MPI_Test(&lanes->request, &done, MPI_STATUS_IGNORE));
        if (!done) break;
        *did = 1;
        MPIDATA_TRY(take_whole(lanes));
    }
    return MPIDATA_SUCCESS;
}

int mpidata_lanes_round(mpidata_lanes *lanes, int *did) {
    mpidata_trainer *trainer = lanes->trainer;
    const int n = trainer->job.plan.trainers;
    if (!trainer->giving.givers) return MPIDATA_SUCCESS;
    if (!lanes->lanes && !(lanes->lanes = calloc((size_t)n, sizeof *lanes->lanes)))
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory in the trainer's receive thread.");
    for (int t = 0; t < n; t++) MPIDATA_TRY(free_sent(&lanes->lanes[t], did));
    if (!mpidata_stopping(&trainer->phase) && trainer->giving.phase != MPIDATA_KEEPS) {
        MPIDATA_TRY(give(lanes, did));
        MPIDATA_TRY(tell_no_more(lanes));
    }
    return take(lanes, did);
}

int mpidata_lanes_close(mpidata_lanes *lanes) {
    int busy = lanes->message != NULL;
    for (int t = 0; lanes->lanes && t < lanes->trainer->job.plan.trainers; t++) busy |= lanes->lanes[t].message != NULL;
    if (!busy) free(lanes->lanes);
    return busy;
}
