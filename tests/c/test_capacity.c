/* A capacity in bytes holds while samples of random sizes come and are drawn by each policy. */
#include <stdlib.h>
#include <string.h>

#include "buffer/buffer.h"
#include "check.h"
#include "wire/plan.h"

static const char text[] =
    "mpidata-plan 1\nrun /run\nfolder /folder\nworld 3\ntrainers 1\ngroups 1\nranks_per_group 1\nin_flight 4\nsimulations 100\n"
    "validation 0\npolicy fifo\ncapacity 100\ncapacity_in_bytes 1\nwatermark 0\ntail drop\nlength nodes 0\nfield u float32 1 nodes\n";
static const char in_windows[] = "samples_window 3\nsamples_stride 2\nsamples_run 4\n";

enum { N = 3000, CAPACITY = 20000, OF_NUMBERS = 8, OUT = -1, UNBORN = -2 };

typedef struct {
    mpidata_plan plan;
    mpidata_slots slots;
    mpidata_ledger ledger;
    mpidata_windows windows;
    mpidata_buffer buffer;
    mpidata_random random;
    int64_t samples[N], waiting;
    int drawn[N], n_numbers;
    int64_t number_of[N]; /* by sample; OUT, UNBORN */
    int64_t sample_of[N * 4];
    int64_t largest, most, drawn_batches;
} job;

static void open_job(job *j, int policy, int64_t watermark, int64_t batch, int windows, uint64_t seed) {
    char plan[sizeof text + sizeof in_windows];
    memset(j, 0, sizeof *j);
    strcpy(plan, text);
    if (windows) strcat(plan, in_windows);
    CHECK(!mpidata_plan_parse(plan, &j->plan) && j->plan.capacity_in_bytes);
    CHECK(!mpidata_ledger_open(&j->ledger, &j->plan, 0) && !mpidata_slots_open(&j->slots, &j->plan));
    mpidata_windows_open(&j->windows, &j->plan, &j->ledger, &j->slots);
    CHECK(!mpidata_buffer_open(&j->buffer, policy, 0, watermark, seed, 0));
    mpidata_buffer_count_bytes(&j->buffer, &j->slots, CAPACITY);
    j->windows.in_bytes = 1;
    if (windows) j->buffer.windows = &j->windows;
    j->buffer.batch = batch;
    j->waiting = -1;
    mpidata_random_seed(&j->random, seed, 1);
}

static void close_job(job *j) {
    mpidata_buffer_close(&j->buffer);
    mpidata_windows_close(&j->windows);
    mpidata_slots_close(&j->slots);
    mpidata_ledger_close(&j->ledger);
    mpidata_plan_free(&j->plan);
}

static int64_t new_slot(job *j, int64_t most) {
    int64_t number = mpidata_slots_take(&j->slots, -1);
    CHECK(number >= 0);
    mpidata_slot *slot = j->slots.slots[number];
    const int64_t bytes = mpidata_random_below(&j->random, 3) ? mpidata_random_below(&j->random, most / 20)
                                                                : mpidata_random_below(&j->random, most - OF_NUMBERS);
    static float values[CAPACITY / 4];
    CHECK(!mpidata_parts_fill(&slot->parts, &j->slots.heap, &j->plan, 0, bytes / 4, values));
    CHECK(mpidata_slot_size(&j->slots, slot) == bytes / 4 * 4 + OF_NUMBERS);
    return number;
}

/* A sample of new steps, or, for windows, one that shares two steps with the previous window. */
static int64_t new_number(job *j, const int64_t *before) {
    if (!j->buffer.windows) return new_slot(j, CAPACITY);
    int64_t steps[3], number;
    for (int i = 0; i < 3; i++) {
        int shared = before && i < 2;
        steps[i] = shared ? before[i + 1] : new_slot(j, CAPACITY / 4);
    }
    CHECK(!mpidata_windows_make(&j->windows, steps, &number));
    return number;
}

static void give_back(job *j, int64_t number) {
    CHECK(j->sample_of[number] >= 0);
    j->number_of[j->sample_of[number]] = OUT;
    j->sample_of[number] = -1;
    if (j->buffer.windows)
        mpidata_windows_give_back(&j->windows, number);
    else
        mpidata_slots_give_back(&j->slots, number);
}

/* Sums the sizes of the samples, or of those never drawn, independently of the buffer's account. */
static int64_t bytes_there(const job *j, int never_drawn) {
    int64_t bytes = 0;
    unsigned char *counted = calloc((size_t)j->slots.n_slots + 1, 1);
    CHECK(counted);
    for (int64_t i = 0; i < j->buffer.count; i++) {
        const int64_t number = mpidata_buffer_at(&j->buffer, i), *steps = &number;
        if (never_drawn && j->drawn[j->sample_of[number]]) continue;
        if (j->buffer.windows) steps = mpidata_windows_steps(&j->windows, number);
        for (int of = 0; of < (j->buffer.windows ? 3 : 1); of++)
            if (!counted[steps[of]]++) bytes += mpidata_slot_size(&j->slots, j->slots.slots[steps[of]]);
    }
    free(counted);
    return bytes;
}

static void check_account(job *j) {
    const int64_t bytes = bytes_there(j, 0), bound = j->buffer.batch * j->largest;
    CHECK(bytes == mpidata_buffer_fill(&j->buffer));
    CHECK(bytes_there(j, 1) == (j->buffer.windows ? j->windows.unseen : j->buffer.unseen_bytes));
    CHECK(bytes <= (CAPACITY > bound ? CAPACITY : bound));
    if (bytes > j->most) j->most = bytes;
}

/* Sample i has come and waits for room; returns whether it has entered. */
static int arrive(job *j, int64_t i) {
    if (j->waiting < 0) {
        j->waiting = new_number(j, j->buffer.windows && i && j->number_of[i - 1] >= 0
                                       ? mpidata_windows_steps(&j->windows, j->number_of[i - 1]) : NULL);
        const int64_t size = mpidata_buffer_bytes(&j->buffer, j->waiting);
        CHECK(size <= CAPACITY);
        if (size > j->largest) j->largest = size;
        j->sample_of[j->waiting] = i;
        j->number_of[i] = j->waiting;
    }
    if (!mpidata_buffer_has_room(&j->buffer, j->waiting)) {
        CHECK(mpidata_buffer_full(&j->buffer) && j->buffer.count >= j->buffer.batch);
        return 0;
    }
    const int had_batch = j->buffer.count >= j->buffer.batch;
    for (int64_t evicted; (evicted = mpidata_buffer_evict(&j->buffer, j->waiting)) >= 0;) {
        CHECK(j->drawn[j->sample_of[evicted]] > 0);
        give_back(j, evicted);
    }
    CHECK(!mpidata_buffer_reserve(&j->buffer) && mpidata_buffer_add(&j->buffer, j->waiting) == -1);
    CHECK(!had_batch || j->buffer.count >= j->buffer.batch); /* the batch may have been promised */
    j->waiting = -1;
    check_account(j);
    return 1;
}

/* Returns whether a batch was available. */
static int draw_batch(job *j) {
    const int64_t available = mpidata_buffer_available(&j->buffer), count = j->buffer.count;
    if ((available == INT64_MAX ? count : available) < j->buffer.batch) return 0;
    for (int64_t i = 0; i < j->buffer.batch; i++) {
        int removed = 0;
        const int64_t number = mpidata_buffer_draw(&j->buffer, &removed);
        j->drawn[j->sample_of[number]]++;
        if (removed) give_back(j, number);
    }
    j->drawn_batches++;
    check_account(j);
    return 1;
}

/* Random arrivals and draws, with phases of more arrivals and of more draws, never both wait. */
static void run(int policy, int64_t watermark, int64_t batch, int windows, uint64_t seed) {
    static job j;
    open_job(&j, policy, watermark, batch, windows, seed);
    for (int64_t came = 0, round = 0; came < N; round++) {
        const int draws = mpidata_random_below(&j.random, 8) < (round / 200 % 2 ? 6 : 1);
        const int moved = draws ? draw_batch(&j) : arrive(&j, came);
        came += moved && !draws;
        if (moved) continue;
        if (draws && arrive(&j, came))
            came++;
        else
            CHECK(draw_batch(&j)); /* no deadlock */
    }
    mpidata_buffer_end(&j.buffer);
    while (draw_batch(&j)) {}
    CHECK(j.buffer.count < batch && j.drawn_batches > N / batch / 2);
    for (int64_t i = 0, left = j.buffer.count; i < N; i++) {
        left -= j.number_of[i] != OUT;
        CHECK(left >= 0);
        if (policy == MPIDATA_POLICY_RESERVOIR)
            CHECK(j.drawn[i] > 0 || j.number_of[i] != OUT); /* no sample was evicted unseen */
        else
            CHECK(j.drawn[i] == (j.number_of[i] == OUT));
    }
    CHECK(j.most > CAPACITY / 2 && (batch > 1 || j.most <= CAPACITY));
    close_job(&j);
}

/* Two samples fill a buffer whose watermark is five: a batch can be drawn. */
static void a_full_buffer_is_above_its_watermark(int policy) {
    static job j;
    open_job(&j, policy, 5, 2, 0, 1);
    int64_t numbers[3];
    for (int i = 0; i < 3; i++) {
        numbers[i] = mpidata_slots_take(&j.slots, -1);
        static float values[CAPACITY / 8];
        CHECK(!mpidata_parts_fill(&j.slots.slots[numbers[i]]->parts, &j.slots.heap, &j.plan, 0, CAPACITY / 8 - 2, values));
    }
    for (int i = 0; i < 2; i++) {
        CHECK(!mpidata_buffer_full(&j.buffer) && mpidata_buffer_available(&j.buffer) == 0);
        CHECK(mpidata_buffer_has_room(&j.buffer, numbers[i]) && !mpidata_buffer_reserve(&j.buffer));
        (void)mpidata_buffer_add(&j.buffer, numbers[i]);
    }
    CHECK(mpidata_buffer_fill(&j.buffer) == CAPACITY && mpidata_buffer_full(&j.buffer));
    CHECK(!mpidata_buffer_has_room(&j.buffer, numbers[2]) && mpidata_buffer_fits(&j.buffer) == 2);
    CHECK(mpidata_buffer_available(&j.buffer) >= 2);
    j.buffer.batch = 3; /* not a batch yet, so there is room */
    CHECK(mpidata_buffer_available(&j.buffer) == 0 && mpidata_buffer_has_room(&j.buffer, numbers[2]));
    CHECK(!mpidata_buffer_full(&j.buffer) && mpidata_buffer_evict(&j.buffer, numbers[2]) == -1);
    CHECK(!mpidata_buffer_reserve(&j.buffer) && mpidata_buffer_add(&j.buffer, numbers[2]) == -1);
    CHECK(mpidata_buffer_full(&j.buffer) && mpidata_buffer_available(&j.buffer) >= 3 && j.buffer.count == 3);
    close_job(&j);
}

int main(void) {
    const int policies[] = {MPIDATA_POLICY_FIFO, MPIDATA_POLICY_FIRO, MPIDATA_POLICY_RESERVOIR};
    for (int p = 0; p < 3; p++) {
        for (uint64_t seed = 0; seed < 4; seed++) {
            run(policies[p], p ? 10 : 0, 1, 0, seed);
            run(policies[p], p ? 10 : 0, 4, 0, seed);
            run(policies[p], p ? 10 : 0, 30, 0, seed); /* a batch is larger than the capacity */
            run(policies[p], p ? 10 : 0, 4, 1, seed);
            run(policies[p], p ? 10 : 0, 30, 1, seed);
        }
        if (p) a_full_buffer_is_above_its_watermark(policies[p]);
    }
    return 0;
}
