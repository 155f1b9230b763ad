/* Trainers that draw nothing give their samples to the others: who is idle, and who gets which sample. */
#include "fake_mpi.h"
#include "receive/giving/handed.h"
#include "receive/giving/lanes.h"
#include "stream/giving/giving.h"
#include "stream/progress.h"
#include "trainer/draw.h"

static const char plan_text[] =
    "mpidata-plan 1\nrun /run\nfolder /folder\nworld 5\ntrainers 3\ngroups 1\nranks_per_group 1\nin_flight 4\nsimulations 10\n"
    "validation 0\npolicy fifo\ncapacity 6\ntail drop\nfield u float64 0\n";

static mpidata_trainer *open_trainer(int index) {
    mpidata_trainer *trainer = calloc(1, sizeof *trainer);
    const mpidata_plan *plan = &trainer->job.plan;
    fake_reset();
    CHECK(!mpidata_plan_parse(plan_text, &trainer->job.plan));
    trainer->job.index = index;
    CHECK(!mpidata_trainer_open_state(trainer) && !mpidata_slots_open(&trainer->slots, plan));
    CHECK(!mpidata_buffer_open(&trainer->buffer, plan->policy, plan->capacity, plan->watermark, plan->seed, 0));
    mpidata_lock_take(&trainer->lock);
    return trainer;
}

static void close_trainer(mpidata_trainer *trainer) {
    mpidata_lock_give(&trainer->lock);
    mpidata_giving_close(trainer);
    mpidata_buffer_close(&trainer->buffer);
    mpidata_slots_close(&trainer->slots);
    mpidata_plan_free(&trainer->job.plan);
    mpidata_trainer_close_state(trainer);
    free(trainer->arrived);
    free(trainer);
}

/* `value` is the value of the sample's field. */
static void add_sample(mpidata_trainer *trainer, int64_t step, double value) {
    const int64_t number = mpidata_slots_take(&trainer->slots, -1);
    mpidata_slot *slot = trainer->slots.slots[number];
    *slot->step = step;
    *slot->simulation = 1;
    memcpy(mpidata_slot_field(&trainer->slots, slot, 0), &value, sizeof value);
    mpidata_trainer_count_draws_locked(trainer, number);
    (void)mpidata_buffer_add(&trainer->buffer, number);
}

/* All learn that trainer 1 and then trainer 2 give. */
static void each_knows_from_whom_more_comes(void) {
    static const int coming[] = {2, 0, 1}, owed[][3] = {{0, 0, 0}, {1, 0, 1}, {1, 0, 0}};
    for (int index = 0; index < 3; index++) {
        mpidata_trainer *trainer = open_trainer(index);
        mpidata_buffer_end(&trainer->buffer);
        for (int i = 0; i < 2; i++) CHECK(!mpidata_note_giver_locked(trainer, 1));
        CHECK(trainer->buffer.ended == (index == 1));
        CHECK(!mpidata_note_giver_locked(trainer, 2));
        CHECK(trainer->giving.coming == coming[index] && trainer->giving.n_givers == 2);
        for (int t = 0; t < 3; t++) CHECK(trainer->giving.owed[t] == owed[index][t]);
        CHECK(trainer->giving.phase == (index ? MPIDATA_GIVES : MPIDATA_KEEPS));
        close_trainer(trainer);
    }
}

/* An idle trainer leaves the end of the stream to the others until it asks for a batch; then it waits for samples. */
static void who_has_never_asked_is_idle(void) {
    mpidata_trainer *trainer = open_trainer(1);
    trainer->batch = 2;
    CHECK(!mpidata_is_idle_locked(trainer)); /* nothing was granted: the stream may be too short for any batch */
    trainer->granted = 4;
    CHECK(mpidata_is_idle_locked(trainer) && !mpidata_lags_locked(trainer));
    trainer->giving.asked = 1;
    CHECK(!mpidata_is_idle_locked(trainer));
    CHECK(!mpidata_note_giver_locked(trainer, 1));
    CHECK(mpidata_is_idle_locked(trainer) && mpidata_lags_locked(trainer));
    trainer->giving.phase = MPIDATA_DRAWS_LATE;
    add_sample(trainer, 0, 1.0);
    CHECK(!mpidata_is_idle_locked(trainer) && mpidata_lags_locked(trainer));
    add_sample(trainer, 2, 2.0);
    CHECK(!mpidata_lags_locked(trainer));
    close_trainer(trainer);
}

/* The scheduler learns how long a trainer has waited for its next batch, but not the time between batches. */
static void who_asks_is_known(void) {
    mpidata_trainer *trainer = open_trainer(0);
    trainer->batch = 2;
    trainer->granted = 1;
    mpidata_trainer_set(trainer);
    const mpidata_event *status = NULL;
    for (int i = 0; i < 2; i++) {
        mpidata_lock_give(&trainer->lock);
        CHECK(mpidata_trainer_ahead(0.0) == (i ? MPIDATA_ERR_AGAIN : MPIDATA_SUCCESS));
        mpidata_lock_take(&trainer->lock);
        fake_clock += 3.0;
        CHECK(!mpidata_trainer_post_status_locked(trainer));
        status = &trainer->outbox->event;
        CHECK(!status->status.idle && (i ? status->status.asks_us >= 3000000 : status->status.asks_us == 0));
        trainer->drawn = 1;
    }
    trainer->giving.asked = 0;
    CHECK(!mpidata_trainer_post_status_locked(trainer) && trainer->outbox->event.status.idle);
    free(trainer->outbox);
    mpidata_trainer_set(NULL);
    close_trainer(trainer);
}

static void round_of(mpidata_lanes *lanes) {
    int did = 0;
    mpidata_lock_give(&lanes->trainer->lock);
    CHECK(!mpidata_lanes_round(lanes, &did));
    mpidata_lock_take(&lanes->trainer->lock);
}

static int64_t step_of(int message) { return ((const mpidata_handed_head *)fake_messages[message].bytes)->step; }

/* Samples go to 0 and 2 in turn; while one of them has not taken its sample, neither gets another one. */
static void the_others_get_as_many(void) {
    mpidata_trainer *trainer = open_trainer(1);
    mpidata_lanes lanes = {.trainer = trainer};
    CHECK(!mpidata_note_giver_locked(trainer, 1));
    for (int i = 0; i < 5; i++) add_sample(trainer, i, i);
    fake_hold_sends = 1;
    round_of(&lanes);
    round_of(&lanes);
    CHECK(fake_n == 2 && fake_messages[0].source == 0 && fake_messages[1].source == 2 && step_of(0) == 0 && step_of(1) == 1);
    fake_messages[1].held = 0;
    round_of(&lanes);
    CHECK(fake_n == 2 && trainer->buffer.count == 3 && trainer->by_draws[0] == 3);
    fake_messages[0].held = 0;
    round_of(&lanes);
    CHECK(fake_n == 4 && fake_messages[2].source == 0 && fake_messages[3].source == 2);
    fake_messages[2].held = fake_messages[3].held = fake_hold_sends = 0;
    round_of(&lanes); /* the last one, to 0 */
    round_of(&lanes);
    CHECK(fake_n == 5 && fake_messages[4].source == 0 && trainer->giving.phase == MPIDATA_GIVES);
    mpidata_buffer_end(&trainer->buffer);
    fake_hold_sends = 1;
    round_of(&lanes);
    CHECK(trainer->giving.phase == MPIDATA_GAVE && fake_n == 7 && !trainer->giving.owed[0] && !trainer->giving.owed[2]);
    for (int i = 5; i < 7; i++) CHECK(((const mpidata_handed_head *)fake_messages[i].bytes)->simulation == -1);
    fake_messages[5].held = fake_messages[6].held = fake_hold_sends = 0;
    round_of(&lanes);
    CHECK(!mpidata_lanes_close(&lanes));
    close_trainer(trainer);
}

/* Once a giver asks for a batch, it keeps the rest, and informs the others. */
static void who_begins_late_keeps_the_rest(void) {
    mpidata_trainer *trainer = open_trainer(1);
    mpidata_lanes lanes = {.trainer = trainer};
    CHECK(!mpidata_note_giver_locked(trainer, 1));
    for (int i = 0; i < 3; i++) add_sample(trainer, i, i);
    trainer->giving.asked = 1;
    round_of(&lanes);
    CHECK(trainer->giving.phase == MPIDATA_DRAWS_LATE && trainer->buffer.count == 3 && fake_n == 2);
    round_of(&lanes);
    CHECK(!mpidata_lanes_close(&lanes));
    close_trainer(trainer);
}

/* Samples from a giver wait for room in the buffer; the last message of each giver ends the handover. */
static void what_comes_waits_for_room(void) {
    mpidata_trainer *giver = open_trainer(1), *trainer = open_trainer(0);
    mpidata_lanes lanes = {.trainer = trainer};
    int64_t words, *messages[8];
    for (int i = 0; i < 7; i++) {
        add_sample(giver, i, 0.5 + i);
        messages[i] = mpidata_handed_pack(&giver->slots, giver->slots.slots[mpidata_buffer_take_out(&giver->buffer)], &words);
        (void)fake_send(1, MPIDATA_TAG_HANDED, messages[i], (size_t)words * 8);
    }
    messages[7] = mpidata_handed_pack_no_more();
    (void)fake_send(1, MPIDATA_TAG_HANDED, messages[7], MPIDATA_HANDED_NO_MORE_WORDS * 8);
    CHECK(!mpidata_note_giver_locked(trainer, 1));
    for (int i = 0; i < 20; i++) {
        int64_t n;
        round_of(&lanes);
        CHECK(!mpidata_trainer_fill_buffer_locked(trainer, &n));
    }
    CHECK(trainer->buffer.count == 6 && trainer->giving.coming == 1 && trainer->giving.taken == 6 && !trainer->n_arrived);
    for (int i = 0; i < 6; i++) {
        const mpidata_slot *slot = trainer->slots.slots[mpidata_buffer_at(&trainer->buffer, i)];
        double value;
        memcpy(&value, mpidata_slot_field(&trainer->slots, slot, 0), sizeof value);
        CHECK(*slot->step == i && value == 0.5 + i);
    }
    mpidata_phase_stop_locked(&trainer->phase); /* from now on all samples are received and dropped */
    for (int i = 0; i < 3; i++) round_of(&lanes);
    CHECK(trainer->giving.coming == 0 && trainer->giving.taken == 6 && trainer->statistics.received == 0);
    for (int i = 0; i < 8; i++) free(messages[i]);
    CHECK(!mpidata_lanes_close(&lanes));
    close_trainer(trainer);
    close_trainer(giver);
}

int main(void) {
    fake_ranks = 5;
    each_knows_from_whom_more_comes();
    who_has_never_asked_is_idle();
    who_asks_is_known();
    the_others_get_as_many();
    who_begins_late_keeps_the_rest();
    what_comes_waits_for_room();
    return 0;
}
