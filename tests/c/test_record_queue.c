/* The samples that wait to be recorded are limited by bytes, for any number of samples, and by their number. */
#include "stream/record_queue.h"

#include <string.h>

#include "check.h"

static const char text[] =
    "mpidata-plan 1\nrun /run\nfolder /folder\nworld 3\ntrainers 1\ngroups 1\nranks_per_group 1\nin_flight 4\nsimulations 10\n"
    "validation 1\npolicy fifo\ncapacity 100\nwatermark 0\ntail drop\nlength nodes 0\nfield u float64 1 nodes\n";

static mpidata_plan plan;
static mpidata_slots slots;
static mpidata_lock lock;
static mpidata_record record;

/* A whole sample comes, with `nodes` nodes of 8 bytes each; nothing else holds it. */
static void come(int64_t simulation, int64_t step, int64_t nodes) {
    const int64_t number = mpidata_slots_take(&slots, -1);
    mpidata_slot *slot = slots.slots[number];
    mpidata_block block = {.field = 0, .ndim = 1, .shape = {nodes}};
    *slot->simulation = simulation;
    *slot->step = step;
    CHECK(mpidata_parts_add(&slot->parts, &slots.heap, &plan, &block, 0) == 0 && !mpidata_parts_join(&slot->parts, &plan));
    CHECK(!mpidata_record_add_locked(&record, &slots, number));
    mpidata_slots_give_back(&slots, number);
}

static void begin(int64_t every, mpidata_amount limit, int skip) {
    mpidata_record_set(every, limit, skip);
    CHECK(!mpidata_record_open(&record, &lock));
}

static void end(void) {
    mpidata_record_drop_locked(&record, &slots, record.waiting.samples);
    CHECK(!record.waiting.bytes && !record.limited.samples && !record.limited.bytes && slots.heap.taken == 0);
    mpidata_record_close(&record);
}

static int lets_in(void) { return mpidata_record_lets_in_locked(&record, 1); }

static void bytes_are_counted(void) {
    begin(2, (mpidata_amount){100, 800}, 0);
    come(0, 0, 1000); /* one alone, whatever its size */
    come(0, 1, 5);    /* not recorded */
    CHECK(record.waiting.samples == 1 && record.waiting.bytes == 8000 && lets_in());
    come(0, 2, 0);
    CHECK(!lets_in() && record.closed_since > 0);
    mpidata_record_drop_locked(&record, &slots, 1);
    CHECK(record.waiting.samples == 1 && record.waiting.bytes == 0 && lets_in());
    come(0, 4, 99);
    CHECK(lets_in());
    come(0, 6, 1);
    CHECK(!lets_in() && record.queued == 4 && record.written == 1 && !record.skipped);
    end();
}

static void samples_are_counted(void) {
    begin(1, (mpidata_amount){3, 800}, 0);
    for (int64_t step = 0; step < 3; step++) {
        CHECK(lets_in());
        come(0, step, 0);
    }
    CHECK(!lets_in());
    end();
}

static void validation_is_not_limited(void) {
    begin(1, (mpidata_amount){100, 800}, 1);
    for (int64_t step = 0; step < 3; step++) come(10, step, 1000);
    come(0, 0, 60);
    come(0, 1, 60);
    CHECK(lets_in() && record.waiting.samples == 5 && record.limited.bytes == 960 && !record.skipped);
    come(0, 2, 60);
    come(10, 3, 1000);
    CHECK(lets_in() && record.skipped == 1 && record.queued == 6);
    end();
}

int main(void) {
    CHECK(!mpidata_plan_parse(text, &plan) && !mpidata_slots_open(&slots, &plan) && !mpidata_lock_open(&lock));
    mpidata_lock_take(&lock);
    bytes_are_counted();
    samples_are_counted();
    validation_is_not_limited();
    mpidata_lock_give(&lock);
    mpidata_lock_close(&lock);
    mpidata_slots_close(&slots);
    mpidata_plan_free(&plan);
    return 0;
}
