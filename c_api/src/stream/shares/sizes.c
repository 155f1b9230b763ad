#include "stream/shares/sizes.h"

#include <stdlib.h>

#include "buffer/copy.h"
#include "stream/progress.h"
#include "stream/shares/shares.h"

/* Drawn samples that are kept to be repeated: the newest ones if there is not room for all. */
static int make_room_for_retired_locked(mpidata_trainer *trainer, int64_t room) {
    MPIDATA_LOCKED(&trainer->lock);
    int64_t *retired = calloc((size_t)room, sizeof *retired);
    if (!retired) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for batches of %lld.", (long long)room);
    int64_t n = trainer->n_retired, drop = n > room ? n - room : 0, oldest = n == room ? 0 : trainer->next_retired;
    for (int64_t i = 0; i < n; i++) {
        int64_t slot = trainer->retired[(oldest + i) % n];
        if (i < drop)
            mpidata_trainer_give_back_locked(trainer, slot);
        else
            retired[i - drop] = slot;
    }
    if (n != room) trainer->next_retired = 0;
    trainer->n_retired = n - drop;
    free(trainer->retired);
    trainer->retired = retired;
    return MPIDATA_SUCCESS;
}

static int set_batch_locked(mpidata_trainer *trainer, int64_t batch) {
    MPIDATA_LOCKED(&trainer->lock);
    MPIDATA_TRY(make_room_for_retired_locked(trainer, batch));
    const mpidata_plan *plan = &trainer->job.plan;
    trainer->batch = trainer->buffer.batch = batch;
    trainer->past_cache = mpidata_exceeds_cache((size_t)(batch * plan->samples_window) * plan->slot_bytes);
    return MPIDATA_SUCCESS;
}

int mpidata_batches_start_locked(mpidata_trainer *trainer, int64_t batch, int64_t total) {
    MPIDATA_LOCKED(&trainer->lock);
    mpidata_shares *shares = &trainer->shares;
    if (!shares->trainers) {
        shares->trainers = trainer->job.plan.trainers - trainer->job.plan.trainer_spares;
        shares->number = trainer->job.index;
    }
    if (!total) return set_batch_locked(trainer, batch);
    MPIDATA_TRY(set_batch_locked(trainer, mpidata_share_at_most(total, shares->trainers)));
    shares->total = total;
    return mpidata_share_from_locked(trainer, 0);
}

int mpidata_share_anew_locked(mpidata_trainer *trainer, int64_t from) {
    MPIDATA_LOCKED(&trainer->lock);
    mpidata_shares *shares = &trainer->shares;
    trainer->granted = from;
    if (!shares->total) return MPIDATA_SUCCESS;
    MPIDATA_TRY(mpidata_share_from_locked(trainer, from));
    const int64_t batch = mpidata_share_at_most(shares->total, shares->trainers);
    return batch > trainer->batch ? set_batch_locked(trainer, batch) : MPIDATA_SUCCESS;
}
