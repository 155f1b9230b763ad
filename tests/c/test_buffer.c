#include <string.h>

#include "buffer/buffer.h"
#include "check.h"
#include "wire/plan.h"

static void fifo(void) {
    mpidata_buffer b;
    int removed;
    CHECK(!mpidata_buffer_open(&b, MPIDATA_POLICY_FIFO, 3, 0, 1, 0));
    int64_t next_in = 0, next_out = 0;
    for (int round = 0; round < 20; round++) {
        while (!mpidata_buffer_full(&b)) CHECK(mpidata_buffer_add(&b, next_in++) == -1);
        CHECK(b.count == (round < 10 ? 3 : 5));
        if (round == 9) CHECK(!mpidata_buffer_grow(&b, 5)); /* in the middle of the ring */
        for (int i = 0; i < 2; i++) CHECK(mpidata_buffer_draw(&b, &removed) == next_out++ && removed);
        if (round == 9) CHECK(b.count == 1 && b.capacity == 5);
    }
    CHECK(mpidata_buffer_available(&b) == b.count);
    mpidata_buffer_close(&b);
}

/* Samples between those that are drawn together stay in the middle of the ring. */
static void fifo_together(void) {
    mpidata_buffer b;
    int removed;
    CHECK(!mpidata_buffer_open(&b, MPIDATA_POLICY_FIFO, 8, 0, 1, 0));
    for (int i = 0; i < 6; i++) (void)mpidata_buffer_add(&b, 100 + i);
    for (int i = 0; i < 6; i++) (void)mpidata_buffer_draw(&b, &removed);
    const int64_t order[] = {10, 12, 14, 11, 15, 13, 16};
    for (int i = 0; i < 7; i++) (void)mpidata_buffer_add(&b, order[i]);
    CHECK(!mpidata_buffer_draw_together(&b, 10, 4, 5) && b.count == 7); /* 13 is the sixth */
    CHECK(!mpidata_buffer_draw_together(&b, 14, 4, 99) && b.count == 7); /* there is no 17 */
    for (int i = 0; i < 7; i++) CHECK(mpidata_buffer_at(&b, i) == order[i]);
    CHECK(mpidata_buffer_draw_together(&b, 10, 4, 6) && b.count == 3);
    for (int i = 0; i < 3; i++) CHECK(mpidata_buffer_draw(&b, &removed) == 14 + i && removed);
    mpidata_buffer_close(&b);
}

/* Samples that are not kept leave, also in the middle of the ring; a reservoir keeps seen samples separate. */
static void keep_some(void) {
    mpidata_buffer b;
    int removed;
    CHECK(!mpidata_buffer_open(&b, MPIDATA_POLICY_FIFO, 5, 0, 1, 0));
    for (int i = 0; i < 4; i++) (void)mpidata_buffer_add(&b, i);
    for (int i = 0; i < 3; i++) (void)mpidata_buffer_draw(&b, &removed);
    for (int i = 4; i < 8; i++) (void)mpidata_buffer_add(&b, i);
    mpidata_buffer_keep(&b, (const char[]){0, 1, 1, 0, 1}); /* of 3 to 7 */
    CHECK(b.count == 3 && mpidata_buffer_at(&b, 0) == 4 && mpidata_buffer_at(&b, 1) == 5 && mpidata_buffer_at(&b, 2) == 7);
    CHECK(mpidata_buffer_add(&b, 8) == -1 && mpidata_buffer_draw(&b, &removed) == 4);
    mpidata_buffer_close(&b);
    CHECK(!mpidata_buffer_open(&b, MPIDATA_POLICY_RESERVOIR, 5, 0, 1, 0));
    for (int i = 0; i < 4; i++) (void)mpidata_buffer_add(&b, i);
    const int64_t seen = mpidata_buffer_draw(&b, &removed), left = mpidata_buffer_at(&b, 2);
    CHECK(b.unseen == 3 && mpidata_buffer_at(&b, 3) == seen);
    mpidata_buffer_keep(&b, (const char[]){0, 0, 1, 1});
    CHECK(b.unseen == 1 && b.count == 2 && mpidata_buffer_at(&b, 0) == left && mpidata_buffer_at(&b, 1) == seen);
    mpidata_buffer_close(&b);
}

static void firo(void) {
    mpidata_buffer b;
    int removed, seen[50] = {0};
    CHECK(!mpidata_buffer_open(&b, MPIDATA_POLICY_FIRO, 50, 20, 1, 0));
    for (int i = 0; i < 20; i++) (void)mpidata_buffer_add(&b, i);
    CHECK(mpidata_buffer_available(&b) == 0); /* not below the watermark */
    for (int i = 20; i < 50; i++) (void)mpidata_buffer_add(&b, i);
    CHECK(mpidata_buffer_full(&b) && mpidata_buffer_available(&b) == 30);
    for (int i = 0; i < 30; i++) seen[mpidata_buffer_draw(&b, &removed)]++;
    CHECK(mpidata_buffer_available(&b) == 0);
    mpidata_buffer_end(&b);
    CHECK(mpidata_buffer_available(&b) == 20);
    for (int i = 0; i < 20; i++) seen[mpidata_buffer_draw(&b, &removed)]++;
    for (int i = 0; i < 50; i++) CHECK(seen[i] == 1);
    mpidata_buffer_close(&b);
}

static void reservoir(void) {
    enum { N = 4000 };
    static int drawn[N], present[N];
    mpidata_buffer b;
    mpidata_random random;
    int removed;
    memset(drawn, 0, sizeof drawn);
    mpidata_random_seed(&random, 3, 3);
    CHECK(!mpidata_buffer_open(&b, MPIDATA_POLICY_RESERVOIR, 40, 10, 1, 0));
    for (int64_t next = 0; next < N;) {
        if (mpidata_random_below(&random, 2) && !mpidata_buffer_full(&b)) {
            int64_t evicted = mpidata_buffer_add(&b, next);
            present[next++] = 1;
            if (evicted < 0) continue;
            CHECK(present[evicted] && drawn[evicted] > 0); /* never an unseen one */
            present[evicted] = 0;
        } else if (mpidata_buffer_available(&b)) {
            int64_t slot = mpidata_buffer_draw(&b, &removed);
            CHECK(present[slot] && !removed);
            drawn[slot]++;
        }
    }
    CHECK(b.count == 40);
    mpidata_buffer_end(&b);
    CHECK(mpidata_buffer_available(&b) == 40);
    for (int i = 0; i < 40; i++) {
        int64_t slot = mpidata_buffer_draw(&b, &removed);
        CHECK(present[slot] && removed);
        present[slot] = 0;
        drawn[slot]++;
    }
    CHECK(mpidata_buffer_available(&b) == 0);
    for (int i = 0; i < N; i++) CHECK(drawn[i] > 0 && !present[i]); /* none was lost */
    mpidata_buffer_close(&b);
}

/* A buffer that keeps its samples draws batches of distinct, equally likely samples, also after its end. */
static void distinct(void) {
    enum { N = 30, BATCH = 8, ROUNDS = 20000 };
    static int drawn[N];
    mpidata_buffer b;
    CHECK(!mpidata_buffer_open(&b, MPIDATA_POLICY_RESERVOIR, N, 10, 1, 0));
    b.keeps = 1;
    for (int i = 0; i < N; i++) CHECK(mpidata_buffer_add(&b, i) == -1);
    for (int round = 0; round < ROUNDS; round++) {
        int64_t slots[BATCH], places[BATCH], unseen = b.unseen;
        if (round == ROUNDS / 2) mpidata_buffer_end(&b);
        mpidata_buffer_draw_distinct(&b, BATCH, slots, places);
        int first = 0, different = 0;
        for (int i = 0; i < BATCH; i++) {
            first += drawn[slots[i]]++ == 0;
            for (int j = 0; j < i; j++) different += slots[i] != slots[j];
        }
        CHECK(different == BATCH * (BATCH - 1) / 2 && b.unseen == unseen - first && b.count == N);
        for (int64_t i = 0; i < N; i++) CHECK((drawn[mpidata_buffer_at(&b, i)] == 0) == (i < b.unseen));
    }
    for (int i = 0; i < N; i++) CHECK(100 * drawn[i] > 95 * ROUNDS * BATCH / N && 100 * drawn[i] < 105 * ROUNDS * BATCH / N);
    CHECK(mpidata_buffer_available(&b) == INT64_MAX);
    mpidata_buffer_close(&b);
    int64_t slots[7], places[7];
    CHECK(!mpidata_buffer_open(&b, MPIDATA_POLICY_RESERVOIR, 4, 0, 1, 0));
    b.keeps = 1;
    CHECK(mpidata_buffer_available(&b) == 0);
    for (int i = 0; i < 3; i++) (void)mpidata_buffer_add(&b, i);
    mpidata_buffer_draw_distinct(&b, 7, slots, places); /* more than the buffer has: each twice, and one three times */
    int count[3] = {0};
    for (int i = 0; i < 7; i++) count[slots[i]]++;
    for (int i = 0; i < 3; i++) CHECK(count[i] == 2 || count[i] == 3);
    mpidata_buffer_close(&b);
}

/* A reservoir that knows the simulations keeps samples of all, although they come one after another. */
static int64_t least_of_any(int known) {
    enum { N = 4000, SIMULATIONS = 40, CAPACITY = 400 };
    static int64_t of[N], here[SIMULATIONS];
    static mpidata_slot slots[N];
    static mpidata_slot *numbers[N];
    mpidata_slots memory = {.slots = numbers};
    mpidata_buffer b;
    int removed;
    memset(here, 0, sizeof here);
    for (int i = 0; i < N; i++) {
        of[i] = i * SIMULATIONS / N;
        slots[i].simulation = &of[i];
        numbers[i] = &slots[i];
    }
    CHECK(!mpidata_buffer_open(&b, MPIDATA_POLICY_RESERVOIR, CAPACITY, 0, 1, 0));
    if (known) CHECK(!mpidata_buffer_know_simulations(&b, &memory, SIMULATIONS));
    for (int i = 0; i < N; i++) {
        const int64_t evicted = mpidata_buffer_add(&b, i);
        here[of[i]]++;
        if (evicted >= 0) here[of[evicted]]--;
        for (int j = 0; j < 4; j++) (void)mpidata_buffer_draw(&b, &removed);
    }
    int64_t least = here[0];
    for (int i = 0; i < SIMULATIONS; i++) {
        CHECK(!known || b.of_simulation[i] == here[i]);
        if (here[i] < least) least = here[i];
    }
    mpidata_buffer_end(&b);
    while (b.count) (void)mpidata_buffer_draw(&b, &removed);
    for (int i = 0; known && i < SIMULATIONS; i++) CHECK(b.of_simulation[i] == 0);
    mpidata_buffer_close(&b);
    return least;
}

static void all_simulations(void) {
    CHECK(least_of_any(1) >= 4); /* 10 on average */
    CHECK(least_of_any(0) == 0);
}

static void all_unseen(void) {
    mpidata_buffer b;
    int removed;
    CHECK(!mpidata_buffer_open(&b, MPIDATA_POLICY_RESERVOIR, 4, 3, 1, 0));
    for (int i = 0; i < 4; i++) {
        CHECK(mpidata_buffer_available(&b) == (i < 3 ? 0 : INT64_MAX));
        CHECK(!mpidata_buffer_full(&b));
        CHECK(mpidata_buffer_add(&b, i) == -1);
    }
    CHECK(mpidata_buffer_full(&b)); /* the producer waits */
    int64_t seen = mpidata_buffer_draw(&b, &removed);
    CHECK(!mpidata_buffer_full(&b));
    CHECK(mpidata_buffer_add(&b, 9) == seen);
    CHECK(mpidata_buffer_full(&b));
    mpidata_buffer_close(&b);
}

/* One arrival or draw, depending on the turn; returns the evicted or drawn slot. */
static int64_t turn(mpidata_buffer *b, int number, int64_t slot) {
    int removed;
    if (number % 5 < 3) return mpidata_buffer_full(b) ? -2 : mpidata_buffer_add(b, slot);
    return mpidata_buffer_available(b) ? mpidata_buffer_draw(b, &removed) : -3;
}

/* A buffer restored from another one continues exactly like it. */
static void continued(int policy) {
    for (int before = 0; before < 200; before += 13) {
        mpidata_buffer a, b;
        CHECK(!mpidata_buffer_open(&a, policy, 20, 4, 7, 3));
        CHECK(!mpidata_buffer_open(&b, policy, 20, 4, 8, 4));
        for (int i = 0; i < before; i++) (void)turn(&a, i, i);
        for (int64_t i = 0; i < a.count; i++) mpidata_buffer_put_back(&b, mpidata_buffer_at(&a, i));
        b.unseen = a.unseen;
        b.random = a.random;
        for (int i = before; i < before + 300; i++) CHECK(turn(&a, i, i) == turn(&b, i, i));
        CHECK(a.count == b.count && a.count > 0);
        mpidata_buffer_end(&a);
        mpidata_buffer_end(&b);
        for (int removed; a.count;) CHECK(mpidata_buffer_draw(&a, &removed) == mpidata_buffer_draw(&b, &removed));
        mpidata_buffer_close(&a);
        mpidata_buffer_close(&b);
    }
}

int main(void) {
    fifo();
    fifo_together();
    keep_some();
    distinct();
    firo();
    reservoir();
    all_simulations();
    all_unseen();
    continued(MPIDATA_POLICY_FIFO);
    continued(MPIDATA_POLICY_FIRO);
    continued(MPIDATA_POLICY_RESERVOIR);
    return 0;
}
