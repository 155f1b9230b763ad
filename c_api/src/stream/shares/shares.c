#include "stream/shares/shares.h"

#include <stdlib.h>

#include "containers/array.h"

static int64_t in_first(const mpidata_share *share, int64_t total, int64_t batches) {
    return (batches * total + share->trainers - 1 - share->number) / share->trainers;
}

int64_t mpidata_batch_size_locked(const mpidata_trainer *trainer, int64_t number, int *trainers) {
    MPIDATA_LOCKED(&trainer->lock);
    const mpidata_shares *shares = &trainer->shares;
    if (!shares->total) return trainer->batch;
    int64_t i = shares->n - 1;
    while (i > 0 && shares->list[i].from > number) i--;
    const mpidata_share *share = &shares->list[i];
    if (trainers) *trainers = share->trainers;
    const int64_t at = number % share->trainers; /* they recur */
    return in_first(share, shares->total, at + 1) - in_first(share, shares->total, at);
}

int64_t mpidata_batches_filled_locked(const mpidata_trainer *trainer, int64_t samples, int64_t most) {
    MPIDATA_LOCKED(&trainer->lock);
    int64_t n = 0;
    if (!trainer->shares.total) return samples / trainer->batch < most ? samples / trainer->batch : most;
    while (n < most && (samples -= mpidata_batch_size_locked(trainer, trainer->drawn + n, NULL)) >= 0) n++;
    return n;
}

int64_t mpidata_batches_needed_locked(const mpidata_trainer *trainer, int64_t samples) {
    MPIDATA_LOCKED(&trainer->lock);
    int64_t n = 0;
    if (!trainer->shares.total) return (samples + trainer->batch - 1) / trainer->batch;
    for (; samples > 0; n++) samples -= mpidata_batch_size_locked(trainer, trainer->drawn + n, NULL);
    return n;
}

int64_t mpidata_share_at_most(int64_t total, int64_t trainers) { return total / trainers + (total % trainers > 0); }

int64_t mpidata_batch_at_most(const mpidata_plan *plan, int64_t batch, int64_t total) {
    return total ? mpidata_share_at_most(total, plan->trainers_at_least ? plan->trainers_at_least : plan->trainers) : batch;
}

int mpidata_share_from_locked(mpidata_trainer *trainer, int64_t from) {
    MPIDATA_LOCKED(&trainer->lock);
    mpidata_shares *shares = &trainer->shares;
    while (shares->n && shares->list[shares->n - 1].from >= from) shares->n--;
    if (!mpidata_array_reserve(&shares->list, &shares->allocated, shares->n + 1, 4, sizeof *shares->list))
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the trainer.");
    shares->list[shares->n++] = (mpidata_share){from, shares->trainers, shares->number};
    return MPIDATA_SUCCESS;
}

void mpidata_shares_close(mpidata_trainer *trainer) { free(trainer->shares.list); }
