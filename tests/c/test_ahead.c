/* Batches are drawn ahead of the training loop only if no wait is needed, and counted once the loop has them. */
#include <string.h>

#include "check.h"
#include "stream/checkpoint.h"
#include "stream/progress.h"
#include "trainer/draw.h"
#include "trainer/scales.h"
#include "trainer/snapshot.h"
#include "trainer/trainer.h"

static void open_trainer(mpidata_trainer *trainer, int policy) {
    trainer->job.plan.trainers = 3;
    trainer->job.plan.policy = policy;
    trainer->job.plan.samples_window = 1;
    trainer->job.plan.n_fields = 1;
    trainer->job.plan.capacity = 100;
    CHECK(mpidata_trainer_open_state(trainer) == MPIDATA_SUCCESS);
    mpidata_trainer_set(trainer);
    trainer->batch = 2;
}

static void close_trainer(mpidata_trainer *trainer) {
    mpidata_trainer_set(NULL);
    while (trainer->outbox) {
        mpidata_outgoing *next = trainer->outbox->next;
        free(trainer->outbox);
        trainer->outbox = next;
    }
    mpidata_trainer_close_state(trainer);
}

static int64_t drawn_in_status(mpidata_trainer *trainer) {
    mpidata_lock_take(&trainer->lock);
    const int64_t drawn = mpidata_trainer_statistics_now_locked(trainer).drawn;
    mpidata_lock_give(&trainer->lock);
    return drawn;
}

/* The end, a checkpoint and an error are left to a draw that waits, and have no effect before it. */
static void nothing_but_a_batch_comes_ahead(void) {
    static mpidata_trainer trainer;
    open_trainer(&trainer, MPIDATA_POLICY_FIRO);
    CHECK(mpidata_trainer_ahead(-1.0) == MPIDATA_ERR_AGAIN && !trainer.giving.asked && trainer.giving.asks_since <= 0.0);
    trainer.granted = 1;
    CHECK(mpidata_trainer_ahead(-1.0) == MPIDATA_SUCCESS);
    trainer.checkpoint.asking = 1; /* its batch is being agreed on */
    CHECK(mpidata_trainer_ahead(-1.0) == MPIDATA_ERR_AGAIN);
    trainer.checkpoint.asking = 0;
    trainer.checkpoint.due = 1;
    CHECK(mpidata_trainer_ahead(-1.0) == MPIDATA_ERR_AGAIN && mpidata_trainer_ahead(0.0) == MPIDATA_CHECKPOINT);
    trainer.checkpoint.due = 0;
    trainer.granted = 0;
    mpidata_lock_take(&trainer.lock);
    mpidata_phase_end_draws_locked(&trainer.phase);
    mpidata_lock_give(&trainer.lock);
    CHECK(mpidata_trainer_ahead(-1.0) == MPIDATA_ERR_AGAIN && !mpidata_draws_told(&trainer.phase) && !trainer.phase.all_drawn);
    CHECK(mpidata_trainer_ahead(0.0) == MPIDATA_END && mpidata_draws_told(&trainer.phase) && trainer.phase.all_drawn);
    trainer.granted = 1;
    trainer.error = MPIDATA_ERR_MPI;
    CHECK(mpidata_trainer_ahead(-1.0) == MPIDATA_ERR_AGAIN && mpidata_trainer_ahead(0.0) == MPIDATA_ERR_MPI);
    close_trainer(&trainer);
}

static void a_batch_counts_when_the_loop_has_it(void) {
    static mpidata_trainer trainer;
    open_trainer(&trainer, MPIDATA_POLICY_FIRO);
    CHECK(mpidata_trainer_had_ahead() == MPIDATA_ERR_ORDER && !trainer.ahead);
    trainer.drawn = 5;
    trainer.ahead = 2;
    CHECK(drawn_in_status(&trainer) == 3);
    CHECK(!mpidata_trainer_checkpoint() && trainer.outbox->event.wanted.batch == 3);
    CHECK(!mpidata_trainer_had_ahead() && trainer.ahead == 1 && trainer.drawn == 5 && drawn_in_status(&trainer) == 4);
    CHECK(!mpidata_trainer_had_ahead() && drawn_in_status(&trainer) == 5);
    CHECK(mpidata_trainer_had_ahead() == MPIDATA_ERR_ORDER);
    close_trainer(&trainer);
}

static void a_report_is_of_the_batch_that_the_loop_has(void) {
    static mpidata_trainer trainer;
    int64_t batch = 0;
    open_trainer(&trainer, MPIDATA_POLICY_FIRO);
    trainer.drawn = 5;
    trainer.ahead = 2;
    CHECK(!mpidata_trainer_report("loss", 0.5));
    memcpy(&batch, trainer.outbox->event.text, sizeof batch);
    CHECK(batch == 3);
    close_trainer(&trainer);
}

/* All trainers have the same information with the same batch, however far ahead each has drawn. */
static void statistics_are_those_of_the_batch_that_the_loop_has(void) {
    static mpidata_trainer trainer;
    mpidata_moments known;
    open_trainer(&trainer, MPIDATA_POLICY_FIRO);
    trainer.job.plan.n_moments = 1;
    CHECK(!mpidata_scales_open(&trainer.scales, &trainer.job.plan));
    for (int batch = 0; batch < 3; batch++) {
        const mpidata_moments of_all = {.count = 10.0 * (batch + 1)};
        CHECK(!mpidata_scales_grant(&trainer.scales, &trainer.job.plan, &of_all, 1, batch));
    }
    trainer.drawn = 3;
    trainer.ahead = 3;
    for (int had = 1; had <= 3; had++) {
        CHECK(!mpidata_trainer_had_ahead() && !mpidata_trainer_scales((double *)&known));
        CHECK((int)known.count == 10 * had);
    }
    mpidata_scales_close(&trainer.scales);
    trainer.job.plan.n_moments = 0;
    close_trainer(&trainer);
}

/* A reservoir guarantees one batch, so no other can be drawn ahead while the loop has it. */
static void a_reservoir_promises_one_more_to_who_draws_ahead(void) {
    static mpidata_trainer trainer;
    int final;
    open_trainer(&trainer, MPIDATA_POLICY_RESERVOIR);
    trainer.buffer.count = 50;
    trainer.buffer.batch = 2;
    trainer.buffer.policy = MPIDATA_POLICY_RESERVOIR;
    mpidata_lock_take(&trainer.lock);
    const int64_t before = mpidata_trainer_guaranteed_locked(&trainer, &final);
    mpidata_lock_give(&trainer.lock);
    CHECK(mpidata_trainer_ahead(-1.0) == MPIDATA_ERR_AGAIN);
    mpidata_lock_take(&trainer.lock);
    CHECK(mpidata_trainer_guaranteed_locked(&trainer, &final) == before + 1 && before == 1);
    mpidata_lock_give(&trainer.lock);
    close_trainer(&trainer);
}

int main(void) {
    nothing_but_a_batch_comes_ahead();
    a_batch_counts_when_the_loop_has_it();
    a_report_is_of_the_batch_that_the_loop_has();
    statistics_are_those_of_the_batch_that_the_loop_has();
    a_reservoir_promises_one_more_to_who_draws_ahead();
    return 0;
}
