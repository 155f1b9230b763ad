#include "trainer/record.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "trainer/trainer_state.h"
#include "base/wait.h"

enum { PIECES_MAX = 256 }; /* of one write */

static struct {
    int64_t every, limit;
    int skip;
} wanted;

int mpidata_trainer_record_start(int64_t every, int64_t limit, int skip) {
    if (every < 1 || limit < 1)
        return mpidata_error(MPIDATA_ERR_ARGUMENT, "A record of every %lld. step, at most %lld waiting. Use 1 or more.",
                             (long long)every, (long long)limit);
    wanted.every = every;
    wanted.limit = limit;
    wanted.skip = skip;
    return MPIDATA_SUCCESS;
}

int mpidata_record_open(mpidata_record *record) {
    pthread_condattr_t attributes;
    memset(record, 0, sizeof *record);
    if (pthread_condattr_init(&attributes) || pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) ||
        pthread_cond_init(&record->ready, &attributes))
        return mpidata_error(MPIDATA_ERR_MEMORY, "The record's lock cannot be made.");
    (void)pthread_condattr_destroy(&attributes);
    record->every = wanted.every;
    record->limit = wanted.limit;
    record->skip = wanted.skip;
    return MPIDATA_SUCCESS;
}

void mpidata_record_close(mpidata_record *record) {
    free(record->queue);
    free(record->taken);
    (void)pthread_cond_destroy(&record->ready);
}

/* -- receiving ------------------------------------------------------------------------------------------------------ */

static int limited(const mpidata_slots *slots, const mpidata_slot *slot) {
    return *slot->simulation < slots->plan->simulations;
}

static int make_room(mpidata_record *record) {
    if (record->n_queued < record->allocated) return MPIDATA_SUCCESS;
    int64_t allocated = record->allocated ? 2 * record->allocated : 64;
    int64_t *grown = realloc(record->queue, (size_t)allocated * sizeof *grown);
    if (!grown) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the record.");
    record->queue = grown;
    record->allocated = allocated;
    return MPIDATA_SUCCESS;
}

int mpidata_record_add(mpidata_record *record, mpidata_slots *slots, int64_t number) {
    mpidata_slot *slot = slots->slots[number];
    if (!record->every || *slot->step % record->every) return MPIDATA_SUCCESS;
    int counts = limited(slots, slot);
    if (counts && record->skip && record->n_limited >= record->limit) {
        record->skipped++;
        return MPIDATA_SUCCESS;
    }
    MPIDATA_TRY(make_room(record));
    record->queue[record->n_queued++] = number;
    record->n_limited += counts;
    record->queued++;
    slot->pins++;
    if (record->enough && record->n_queued >= record->enough) {
        record->enough = 0;
        (void)pthread_cond_signal(&record->ready);
    }
    return MPIDATA_SUCCESS;
}

int mpidata_record_lets_in(mpidata_record *record, int room) {
    int full = record->every && !record->skip && record->n_limited >= record->limit;
    if (room && full) {
        if (!(record->closed_since > 0)) record->closed_since = mpidata_now();
    } else if (record->closed_since > 0) {
        record->slowed_s += mpidata_now() - record->closed_since;
        record->closed_since = 0;
    }
    return room && !full;
}

/* -- writing -------------------------------------------------------------------------------------------------------- */

/* Under the lock: forget the oldest n. */
static void drop(mpidata_trainer *trainer, int64_t n) {
    mpidata_record *record = &trainer->record;
    for (int64_t i = 0; i < n; i++) {
        record->n_limited -= limited(&trainer->slots, trainer->slots.slots[record->queue[i]]);
        mpidata_slots_unpin(&trainer->slots, record->queue[i]);
    }
    record->n_queued -= n;
    record->written += n;
    record->n_taken = 0;
    if (n) memmove(record->queue, record->queue + n, (size_t)record->n_queued * sizeof *record->queue);
    mpidata_trainer_wake(trainer);
}

/* Under the lock: sleep until there are enough, or the time has passed. */
static void wait_for(mpidata_trainer *trainer, int64_t most, double timeout_s) {
    mpidata_record *record = &trainer->record;
    int64_t half = record->limit > 1 ? record->limit / 2 : 1, enough = most < half ? most : half;
    double deadline = mpidata_now() + timeout_s, seconds = floor(deadline);
    struct timespec until = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((deadline - seconds) * 1e9)};
    record->enough = enough;
    while (record->n_queued < enough && record->every)
        if (pthread_cond_timedwait(&record->ready, &trainer->lock, &until) == ETIMEDOUT) break;
    record->enough = 0;
}

/* Under the lock. The slots' addresses are kept: the list of slots may move while they are written. */
static int take(mpidata_trainer *trainer, int64_t n, double *parameters, double *time, int64_t *step,
                int64_t *simulation) {
    mpidata_record *record = &trainer->record;
    size_t n_parameters = (size_t)trainer->job.plan.n_parameters;
    mpidata_slot **taken = realloc(record->taken, (size_t)n * sizeof *taken);
    if (!taken) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the record.");
    record->taken = taken;
    record->n_taken = n;
    for (int64_t i = 0; i < n; i++) {
        const mpidata_slot *slot = taken[i] = trainer->slots.slots[record->queue[i]];
        if (n_parameters) memcpy(parameters + (size_t)i * n_parameters, slot->parameters, n_parameters * sizeof *parameters);
        time[i] = *slot->time;
        step[i] = *slot->step;
        simulation[i] = *slot->simulation;
    }
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_record_take(int64_t most, double *parameters, double *time, int64_t *step, int64_t *simulation,
                                int64_t *count, double timeout_s) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    (void)pthread_mutex_lock(&trainer->lock);
    wait_for(trainer, most, timeout_s);
    int status = MPIDATA_ERR_AGAIN;
    *count = most < trainer->record.n_queued ? most : trainer->record.n_queued;
    if (*count) status = take(trainer, *count, parameters, time, step, simulation);
    (void)pthread_mutex_unlock(&trainer->lock);
    return status;
}

static int write_pieces(int file, struct iovec *pieces, int n, int64_t *offset) {
    while (n) {
        ssize_t done = pwritev(file, pieces, n, (off_t)*offset);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return errno;
        if (done == 0) return ENOSPC;
        *offset += done;
        size_t left = (size_t)done;
        for (; n && left >= pieces->iov_len; pieces++, n--) left -= pieces->iov_len;
        if (!n) break;
        pieces->iov_base = (char *)pieces->iov_base + left;
        pieces->iov_len -= left;
    }
    return 0;
}

int mpidata_trainer_record_write(int file, int field, int64_t first, int64_t count, int64_t offset) {
    mpidata_trainer *trainer;
    struct iovec pieces[PIECES_MAX];
    if (mpidata_the_trainer(&trainer) || field < 0 || field >= trainer->job.plan.n_fields || first < 0 || count < 0 ||
        count > trainer->record.n_taken - first)
        return EINVAL;
    const mpidata_field *declared = &trainer->job.plan.fields[field];
    size_t bytes = (size_t)declared->elements * declared->element_size;
    for (int64_t i = 0; i < count; i += PIECES_MAX) {
        int n = count - i < PIECES_MAX ? (int)(count - i) : PIECES_MAX;
        for (int j = 0; j < n; j++) {
            pieces[j].iov_base = mpidata_slot_field(&trainer->slots, trainer->record.taken[first + i + j], field);
            pieces[j].iov_len = bytes;
        }
        int failed = write_pieces(file, pieces, n, &offset);
        if (failed) return failed;
    }
    return 0;
}

int mpidata_trainer_record_release(void) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    (void)pthread_mutex_lock(&trainer->lock);
    drop(trainer, trainer->record.n_taken);
    (void)pthread_mutex_unlock(&trainer->lock);
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_record_stop(const char *why) {
    mpidata_trainer *trainer;
    mpidata_event event = {.kind = MPIDATA_EVENT_RECORD_STOPPED};
    (void)snprintf(event.text, sizeof event.text, "%s", why ? why : "");
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    (void)pthread_mutex_lock(&trainer->lock);
    trainer->record.every = 0;
    drop(trainer, trainer->record.n_queued);
    int status = why ? mpidata_trainer_post(trainer, &event) : MPIDATA_SUCCESS;
    (void)pthread_mutex_unlock(&trainer->lock);
    return status;
}

int mpidata_trainer_record_figures(mpidata_record_figures *figures) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    (void)pthread_mutex_lock(&trainer->lock);
    const mpidata_record *record = &trainer->record;
    figures->queued = record->queued;
    figures->written = record->written;
    figures->skipped = record->skipped;
    figures->slowed_s = record->slowed_s + (record->closed_since > 0 ? mpidata_now() - record->closed_since : 0);
    (void)pthread_mutex_unlock(&trainer->lock);
    return MPIDATA_SUCCESS;
}
