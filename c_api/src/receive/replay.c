#include "receive/replay.h"

#include <string.h>

#include "base/wait.h"

/* If nothing has progressed for this time, each group may have that many more samples held: the awaited sample may belong to a
 * simulation that waits for a group. */
static const double MORE_EVERY_S = 2.0;
/* This much of each group is always held, so that small samples never reach the limit, */
static const int64_t HELD_BYTES = 16 << 20, HELD_SAMPLES = 2048;
/* and this factor more of a group that has started to send the awaited simulation. */
static const double MORE_OF_SENDER = 16;

/* Whether the awaited sample belongs to a simulation that this group has started to send. */
static int sends_wanted_locked(const mpidata_trainer *trainer, int group) {
    MPIDATA_LOCKED(&trainer->lock);
    const mpidata_journal_entry *next = &trainer->journal.next;
    return next->kind == MPIDATA_JOURNAL_SAMPLE && trainer->journal.groups[next->simulation] == group;
}

static int may_send_locked(mpidata_trainer *trainer, int group) {
    MPIDATA_LOCKED(&trainer->lock);
    double times = 1 + (mpidata_now() - trainer->journal.since) / MORE_EVERY_S;
    int64_t held = 0, bytes = 0;
    for (int64_t i = 0; i < trainer->n_arrived; i++) {
        const mpidata_slot *slot = trainer->slots.slots[trainer->arrived[i]];
        if (slot->group != group) continue;
        held++;
        bytes += mpidata_slot_size(&trainer->slots, slot);
    }
    if (held < HELD_SAMPLES && bytes < HELD_BYTES) return 1;
    if (sends_wanted_locked(trainer, group)) times += MORE_OF_SENDER;
    return (double)held < times * trainer->job.plan.in_flight;
}

int mpidata_replay_probe(mpidata_trainer *trainer, const mpidata_inlet *inlet, int *here, MPI_Message *message,
                         MPI_Status *status) {
    int group = -1, open = 0;
    *here = 0;
    for (int rank = 0; rank < inlet->link.n_ranks && !*here; rank++) {
        const mpidata_source *source = &inlet->sources[MPIDATA_STREAMS * rank];
        if (source->group < 0) continue;
        if (source->group != group) {
            group = source->group;
            mpidata_lock_take(&trainer->lock);
            open = source->lost || source->drained || may_send_locked(trainer, group);
            mpidata_lock_give(&trainer->lock);
        }
        if (open) MPIDATA_TRY_MPI(MPI_Improbe(rank, MPIDATA_TAG_SAMPLE, inlet->link.comm, here, message, status));
    }
    return MPIDATA_SUCCESS;
}

static int64_t find_locked(const mpidata_trainer *trainer, const mpidata_journal_entry *wanted) {
    MPIDATA_LOCKED(&trainer->lock);
    for (int64_t i = 0; i < trainer->n_arrived; i++) {
        const mpidata_slot *slot = trainer->slots.slots[trainer->arrived[i]];
        if (*slot->simulation == wanted->simulation && *slot->step == wanted->step) return i;
    }
    return -1;
}

/* Error if a sample that the journal names will not come. */
static int check_coming_locked(const mpidata_trainer *trainer, const mpidata_journal_entry *wanted, int over) {
    MPIDATA_LOCKED(&trainer->lock);
    int64_t steps = trainer->ledger.entries[wanted->simulation].steps;
    if (!over && (steps < 0 || wanted->step < steps)) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_ARGUMENT,
                         "Simulation %lld, step %lld is in the replayed run, %s, but does not come: the "
                         "simulation has fewer steps now. Replay the run with the programs that it had.",
                         (long long)wanted->simulation, (long long)wanted->step, trainer->job.plan.replay);
}

static int hand_over_locked(mpidata_trainer *trainer, int64_t i) {
    MPIDATA_LOCKED(&trainer->lock);
    int64_t number = trainer->arrived[i];
    /* Before the size of the batches is known again, a buffer in bytes cannot tell. */
    const int unknown = trainer->buffer.memory && !trainer->batch;
    if (!mpidata_buffer_has_room(&trainer->buffer, number) && !unknown)
        return mpidata_error(MPIDATA_ERR_ARGUMENT,
                             "The journal has a sample for which the buffer has no room, in line %lld. It does not belong "
                             "to this job, and cannot be replayed.",
                             (long long)trainer->journal.line);
    const mpidata_slot *slot = trainer->slots.slots[number];
    trainer->journal.groups[*slot->simulation] = slot->group;
    MPIDATA_TRY(mpidata_journal_sample(&trainer->journal, &trainer->slots, number));
    int64_t evicted;
    while ((evicted = mpidata_buffer_evict(&trainer->buffer, number)) >= 0) mpidata_slots_give_back(&trainer->slots, evicted);
    if (mpidata_buffer_reserve(&trainer->buffer))
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a list of samples.");
    if ((evicted = mpidata_buffer_add(&trainer->buffer, number)) >= 0) mpidata_slots_give_back(&trainer->slots, evicted);
    trainer->n_arrived--;
    memmove(trainer->arrived + i, trainer->arrived + i + 1, (size_t)(trainer->n_arrived - i) * sizeof *trainer->arrived);
    return MPIDATA_SUCCESS;
}

static int refuse_locked(const mpidata_trainer *trainer, const mpidata_slot *slot) {
    MPIDATA_LOCKED(&trainer->lock);
    return mpidata_error(MPIDATA_ERR_ARGUMENT,
                         "Simulation %lld, step %lld has come, but is not in the replayed run, %s. Replay the "
                         "run with the programs that it had.",
                         (long long)*slot->simulation, (long long)*slot->step, trainer->job.plan.replay);
}

/* Do not wait for samples that would be held forever. */
static int check_held_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    for (int64_t i = 0; i < trainer->n_arrived; i++) {
        const mpidata_slot *slot = trainer->slots.slots[trainer->arrived[i]];
        if (mpidata_journal_lacks(&trainer->journal, *slot->simulation, *slot->step)) return refuse_locked(trainer, slot);
    }
    return MPIDATA_SUCCESS;
}

static int end_locked(mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    if (trainer->n_arrived) return refuse_locked(trainer, trainer->slots.slots[trainer->arrived[0]]);
    MPIDATA_TRY(mpidata_journal_note(&trainer->journal, MPIDATA_JOURNAL_END, 0));
    mpidata_buffer_end(&trainer->buffer);
    return MPIDATA_SUCCESS;
}

/* The scheduler cancels a simulation that the replayed run had cancelled when all trainers have had the same samples of it. */
static int say_what_is_needed_no_more_locked(mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    mpidata_event event = {.kind = MPIDATA_EVENT_CANCEL, .cancel = {1}};
    for (int64_t simulation; trainer->journal.unsaid && (simulation = mpidata_journal_next_cancelled(&trainer->journal)) >= 0;) {
        memcpy(event.text, &simulation, sizeof simulation);
        MPIDATA_TRY(mpidata_trainer_post_locked(trainer, &event));
    }
    return MPIDATA_SUCCESS;
}

int mpidata_replay_fill_locked(mpidata_trainer *trainer, int over, int64_t *n) {
    MPIDATA_LOCKED(&trainer->lock);
    MPIDATA_TRY(say_what_is_needed_no_more_locked(trainer));
    const mpidata_journal_entry *next = &trainer->journal.next;
    for (*n = 0; next->kind == MPIDATA_JOURNAL_SAMPLE; ++*n) {
        int64_t i = find_locked(trainer, next);
        if (i < 0) MPIDATA_TRY(check_held_locked(trainer));
        if (i < 0) return check_coming_locked(trainer, next, over);
        MPIDATA_TRY(hand_over_locked(trainer, i));
    }
    if (next->kind != MPIDATA_JOURNAL_END || !over) return MPIDATA_SUCCESS;
    ++*n;
    return end_locked(trainer);
}
