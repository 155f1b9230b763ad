/* A lock that knows its holder, so that functions which need it can check that it is held: their names end in _locked.
 * With NDEBUG it is a mutex without checks. */
#ifndef MPIDATA_LOCK_H
#define MPIDATA_LOCK_H

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>

typedef struct {
    pthread_mutex_t mutex;
    pthread_t holder; /* while it is held; also with NDEBUG, which the library may have and tests have not */
    int held;
    pthread_cond_t *told[2];
} mpidata_lock;

#define MPIDATA_FOR_EVER 1e9 /* a deadline that never comes */

/* The condition's deadlines use the clock of mpidata_now. Both return 0, or errno. */
static inline int mpidata_lock_open(mpidata_lock *lock) {
    lock->held = 0;
    lock->told[0] = lock->told[1] = NULL;
    return pthread_mutex_init(&lock->mutex, NULL);
}

static inline int mpidata_condition_open(pthread_cond_t *condition) {
    pthread_condattr_t attributes;
    int failed = pthread_condattr_init(&attributes);
    if (failed) return failed;
    failed = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    if (!failed) failed = pthread_cond_init(condition, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    return failed;
}

static inline void mpidata_lock_close(mpidata_lock *lock) { (void)pthread_mutex_destroy(&lock->mutex); }

/* Whether this thread holds it. Only for assertions: with NDEBUG the holder is not recorded. */
static inline int mpidata_lock_is_mine(const mpidata_lock *lock) {
    return lock->held && pthread_equal(lock->holder, pthread_self());
}

#define MPIDATA_LOCKED(lock) assert(mpidata_lock_is_mine(lock))

static inline void mpidata_lock_note(mpidata_lock *lock, int held) {
#ifdef NDEBUG
    (void)lock, (void)held;
#else
    lock->holder = pthread_self();
    lock->held = held;
#endif
}

static inline void mpidata_lock_take(mpidata_lock *lock) {
    (void)pthread_mutex_lock(&lock->mutex);
    mpidata_lock_note(lock, 1);
}

/* Wake all who sleep on the condition when the lock is released: earlier, they would only wait for it. */
static inline void mpidata_lock_tell_locked(mpidata_lock *lock, pthread_cond_t *condition) {
    MPIDATA_LOCKED(lock);
    if (!lock->told[0] || lock->told[0] == condition)
        lock->told[0] = condition;
    else if (!lock->told[1] || lock->told[1] == condition)
        lock->told[1] = condition;
    else
        (void)pthread_cond_broadcast(condition);
}

static inline void mpidata_lock_give(mpidata_lock *lock) {
    MPIDATA_LOCKED(lock);
    pthread_cond_t *const told[] = {lock->told[0], lock->told[1]};
    lock->told[0] = lock->told[1] = NULL;
    mpidata_lock_note(lock, 0);
    (void)pthread_mutex_unlock(&lock->mutex);
    if (told[0]) (void)pthread_cond_broadcast(told[0]);
    if (told[1]) (void)pthread_cond_broadcast(told[1]);
}

/* Release it until the condition is signalled or the deadline has passed; returns 0 at the deadline. */
static inline int mpidata_lock_sleep_locked(mpidata_lock *lock, pthread_cond_t *condition, double deadline) {
    time_t seconds = (time_t)deadline;
    struct timespec until = {.tv_sec = seconds, .tv_nsec = (long)((deadline - (double)seconds) * 1e9)};
    MPIDATA_LOCKED(lock);
    for (int i = 0; i < 2; i++) {
        if (lock->told[i]) (void)pthread_cond_broadcast(lock->told[i]);
        lock->told[i] = NULL;
    }
    mpidata_lock_note(lock, 0);
    int in_time = pthread_cond_timedwait(condition, &lock->mutex, &until) != ETIMEDOUT;
    mpidata_lock_note(lock, 1);
    return in_time;
}

#endif
