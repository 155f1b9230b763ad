/* The sizes of each trainer's part of global batches, also when the trainers change. */
#include "stream/shares/shares.h"

#include "check.h"
#include "stream/shares/sizes.h"
#include "trainer/draw.h"

enum { TRAINERS = 5, BATCHES = 40 };

static void open_trainer(mpidata_trainer *trainer, int index, int trainers) {
    trainer->job.plan.trainers = trainers;
    trainer->job.plan.samples_window = 1;
    trainer->job.plan.slot_bytes = 8;
    trainer->job.index = index;
    CHECK(!mpidata_lock_open(&trainer->lock));
}

static void close_trainer(mpidata_trainer *trainer) {
    mpidata_shares_close(trainer);
    free(trainer->retired);
    mpidata_lock_close(&trainer->lock);
}

static void check_sums(int64_t total, int trainers) {
    static mpidata_trainer all[TRAINERS];
    int64_t drawn[TRAINERS] = {0};
    for (int i = 0; i < trainers; i++) {
        all[i] = (mpidata_trainer){0};
        open_trainer(&all[i], i, trainers);
        mpidata_lock_take(&all[i].lock);
        CHECK(mpidata_batches_start_locked(&all[i], 0, total) == MPIDATA_SUCCESS);
        CHECK(all[i].batch == (total + trainers - 1) / trainers && all[i].buffer.batch == all[i].batch);
    }
    for (int64_t b = 0; b < BATCHES; b++) {
        int64_t sum = 0, least = INT64_MAX, most = 0;
        for (int i = 0; i < trainers; i++) {
            int of = 0;
            const int64_t size = mpidata_batch_size_locked(&all[i], b, &of);
            CHECK(of == trainers && (size == total / trainers || size == all[i].batch));
            CHECK(b || size == total / trainers + (i < total % trainers)); /* the first trainers first */
            sum += size;
            drawn[i] += size;
            if (drawn[i] < least) least = drawn[i];
            if (drawn[i] > most) most = drawn[i];
        }
        CHECK(sum == total && most - least <= 1);
    }
    for (int i = 0; i < trainers; i++) {
        all[i].drawn = 3;
        int64_t samples = 0;
        for (int64_t n = 0; n < 7; n++) {
            const int64_t size = mpidata_batch_size_locked(&all[i], 3 + n, NULL);
            CHECK(mpidata_batches_filled_locked(&all[i], samples, 100) == n && mpidata_batches_needed_locked(&all[i], samples) == n);
            if (size > 1) CHECK(mpidata_batches_filled_locked(&all[i], samples + size - 1, 100) == n);
            CHECK(mpidata_batches_needed_locked(&all[i], samples + 1) == n + 1);
            samples += size;
        }
        CHECK(mpidata_batches_filled_locked(&all[i], samples, 4) == 4);
        mpidata_lock_give(&all[i].lock);
        close_trainer(&all[i]);
    }
}

static void change(mpidata_trainer *trainer, int trainers, int number, int64_t from) {
    trainer->shares.trainers = trainers;
    trainer->shares.number = number;
    trainer->granted = 100;
    CHECK(mpidata_share_anew_locked(trainer, from) == MPIDATA_SUCCESS && trainer->granted == from);
}

/* A trainer behind the others still has to draw the earlier batches in their old sizes. */
static void check_changes(void) {
    static mpidata_trainer trainer;
    int of;
    open_trainer(&trainer, 2, 3);
    mpidata_lock_take(&trainer.lock);
    CHECK(mpidata_batches_start_locked(&trainer, 0, 64) == MPIDATA_SUCCESS && trainer.batch == 22);
    trainer.retired[0] = 7; /* drawn samples that may be repeated stay */
    trainer.n_retired = 1;
    trainer.drawn = 4;
    change(&trainer, 2, 1, 6);
    CHECK(trainer.batch == 32 && trainer.buffer.batch == 32 && trainer.n_retired == 1 && trainer.retired[0] == 7);
    CHECK(mpidata_batch_size_locked(&trainer, 5, &of) == 22 && of == 3);
    CHECK(mpidata_batch_size_locked(&trainer, 6, &of) == 32 && of == 2);
    CHECK(mpidata_batches_filled_locked(&trainer, 21 + 22 + 31, 9) == 2); /* the earlier batches are of 21 and 22 */
    CHECK(mpidata_batches_filled_locked(&trainer, 21 + 22 + 32, 9) == 3);
    change(&trainer, 1, 0, 8); /* again, before the trainer has come there */
    CHECK(mpidata_batch_size_locked(&trainer, 5, NULL) == 22 && mpidata_batch_size_locked(&trainer, 7, NULL) == 32);
    CHECK(mpidata_batch_size_locked(&trainer, 8, &of) == 64 && of == 1 && trainer.batch == 64);
    trainer.drawn = 5;
    change(&trainer, 2, 0, 5); /* batches that nobody has begun are dropped */
    CHECK(mpidata_batch_size_locked(&trainer, 4, NULL) == 21 && mpidata_batch_size_locked(&trainer, 8, &of) == 32 && of == 2);
    mpidata_lock_give(&trainer.lock);
    close_trainer(&trainer);
}

/* Nobody draws after the trainers have regrouped until they have agreed on the batch of the new shares. */
static void check_wait(void) {
    static mpidata_trainer trainer;
    trainer.job.plan.trainers = 3;
    trainer.job.plan.samples_window = 1;
    CHECK(mpidata_trainer_open_state(&trainer) == MPIDATA_SUCCESS);
    mpidata_trainer_set(&trainer);
    mpidata_lock_take(&trainer.lock);
    CHECK(mpidata_batches_start_locked(&trainer, 0, 64) == MPIDATA_SUCCESS);
    trainer.granted = 2;
    mpidata_lock_give(&trainer.lock);
    CHECK(mpidata_trainer_ahead(0.0) == MPIDATA_SUCCESS);
    trainer.shares.changes = 1;
    CHECK(mpidata_trainer_ahead(0.0) == MPIDATA_ERR_AGAIN);
    trainer.shares.total = 0; /* each has its own size, which stays */
    CHECK(mpidata_trainer_ahead(0.0) == MPIDATA_SUCCESS);
    mpidata_trainer_set(NULL);
    mpidata_shares_close(&trainer);
    free(trainer.retired);
    mpidata_trainer_close_state(&trainer);
}

static void check_without(void) {
    static mpidata_trainer trainer;
    open_trainer(&trainer, 0, 3);
    mpidata_lock_take(&trainer.lock);
    CHECK(mpidata_batches_start_locked(&trainer, 4, 0) == MPIDATA_SUCCESS && trainer.batch == 4);
    CHECK(mpidata_batch_size_locked(&trainer, 17, NULL) == 4 && mpidata_batches_filled_locked(&trainer, 11, 9) == 2);
    CHECK(mpidata_batches_needed_locked(&trainer, 11) == 3 && mpidata_batches_filled_locked(&trainer, 40, 9) == 9);
    trainer.granted = 5;
    CHECK(mpidata_share_anew_locked(&trainer, 3) == MPIDATA_SUCCESS && trainer.granted == 3);
    mpidata_lock_give(&trainer.lock);
    close_trainer(&trainer);
    mpidata_plan plan = {.trainers = 3};
    CHECK(mpidata_batch_at_most(&plan, 4, 0) == 4 && mpidata_batch_at_most(&plan, 0, 64) == 22);
    plan.trainers_at_least = 2;
    CHECK(mpidata_batch_at_most(&plan, 0, 64) == 32);
}

int main(void) {
    for (int trainers = 1; trainers <= TRAINERS; trainers++)
        for (int64_t total = trainers; total < 30; total++) check_sums(total, trainers);
    check_changes();
    check_wait();
    check_without();
    return 0;
}
