/* A lock knows its holder, also across a sleep in which others hold it, and wakes notified sleepers on release. */
#include "base/lock.h"

#include "check.h"

static mpidata_lock lock;
static pthread_cond_t told, asked, third;
static int seen;

static double in_a_minute(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 60.0;
}

static void *another_thread(void *unused) {
    (void)unused;
    mpidata_lock_take(&lock);
    CHECK(mpidata_lock_is_mine(&lock));
    seen = 1;
    mpidata_lock_tell_locked(&lock, &told);
    while (seen < 2) CHECK(mpidata_lock_sleep_locked(&lock, &asked, in_a_minute())); /* `told` must wake first */
    mpidata_lock_tell_locked(&lock, &asked);
    mpidata_lock_tell_locked(&lock, &told);
    mpidata_lock_tell_locked(&lock, &third);
    mpidata_lock_tell_locked(&lock, &told);
    seen = 3;
    mpidata_lock_give(&lock);
    return NULL;
}

static void *ask(void *mine) {
    *(int *)mine = mpidata_lock_is_mine(&lock);
    return NULL;
}

int main(void) {
    pthread_t thread;
    int others = 1;
    CHECK(!mpidata_lock_open(&lock) && !mpidata_condition_open(&told) && !mpidata_condition_open(&asked) &&
          !mpidata_condition_open(&third) && !mpidata_lock_is_mine(&lock));
    mpidata_lock_take(&lock);
    CHECK(mpidata_lock_is_mine(&lock));
    CHECK(!pthread_create(&thread, NULL, ask, &others) && !pthread_join(thread, NULL) && !others);
    CHECK(!mpidata_lock_sleep_locked(&lock, &told, 0.0) && mpidata_lock_is_mine(&lock));
    CHECK(!pthread_create(&thread, NULL, another_thread, NULL));
    while (!seen) CHECK(mpidata_lock_sleep_locked(&lock, &told, in_a_minute()));
    seen = 2;
    mpidata_lock_tell_locked(&lock, &asked);
    mpidata_lock_give(&lock);
    mpidata_lock_take(&lock);
    while (seen < 3) CHECK(mpidata_lock_sleep_locked(&lock, &third, in_a_minute()));
    CHECK(mpidata_lock_is_mine(&lock));
    mpidata_lock_give(&lock);
    CHECK(!pthread_join(thread, NULL) && !mpidata_lock_is_mine(&lock));
    mpidata_lock_close(&lock);
    return 0;
}
