#include "stream/giving/giving.h"

#include <stdlib.h>
#include <string.h>

void mpidata_giving_close(mpidata_trainer *trainer) {
    free(trainer->giving.givers);
    free(trainer->giving.owed);
}

static int reserve(mpidata_giving *giving, size_t trainers) {
    if (giving->givers) return MPIDATA_SUCCESS;
    giving->givers = calloc(trainers, 1);
    giving->owed = calloc(trainers, 1);
    return giving->givers && giving->owed ? MPIDATA_SUCCESS
                                          : mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the trainer.");
}

/* All trainers learn of the givers in the same order, so a giver knows those before it, which expect nothing of it. */
int mpidata_note_giver_locked(mpidata_trainer *trainer, int giver) {
    MPIDATA_LOCKED(&trainer->lock);
    mpidata_giving *giving = &trainer->giving;
    MPIDATA_TRY(reserve(giving, (size_t)trainer->job.plan.trainers));
    if (giving->givers[giver]) return MPIDATA_SUCCESS;
    if (giver == trainer->job.index) {
        giving->phase = MPIDATA_GIVES;
        for (int t = 0; t < trainer->job.plan.trainers; t++) giving->owed[t] = t != giver && !giving->givers[t];
    } else if (giving->phase == MPIDATA_KEEPS) {
        giving->coming++;
        if (!mpidata_draws_ended(&trainer->phase)) mpidata_buffer_reopen(&trainer->buffer);
    }
    giving->givers[giver] = 1;
    giving->n_givers++;
    return MPIDATA_SUCCESS;
}

int mpidata_is_idle_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    const mpidata_plan *plan = &trainer->job.plan;
    if (mpidata_gives(trainer)) return 1;
    /* Only if it could be told to give: see mpidata/scheduler/idle_trainers.py. */
    return !trainer->giving.asked && trainer->granted > 0 && trainer->batch > 1 && !trainer->shares.total && plan->samples_window == 1 &&
           plan->repeats <= 0 && !plan->journal && !plan->replay && !plan->trainers_at_least;
}

int mpidata_lags_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    const mpidata_buffer *buffer = &trainer->buffer;
    if (trainer->giving.phase == MPIDATA_KEEPS || trainer->drawn >= trainer->granted) return 0;
    if (buffer->ended && trainer->job.plan.tail == MPIDATA_TAIL_REPEAT) return !buffer->count && !trainer->n_retired;
    return trainer->giving.phase != MPIDATA_DRAWS_LATE || mpidata_buffer_available(buffer) < trainer->batch;
}
