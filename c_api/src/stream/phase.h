/* The phase of a trainer on its way to the end. Its two sides, the draws and the receive thread, advance independently, and
 * only forward. But if a trainer dies and the others continue, draws may resume. */
#ifndef MPIDATA_PHASE_H
#define MPIDATA_PHASE_H

#include "base/lock.h"

typedef enum {
    MPIDATA_DRAWS_GO_ON,
    MPIDATA_DRAWS_ENDED, /* no more batches are granted */
    MPIDATA_DRAWS_TOLD,  /* a draw has returned MPIDATA_END */
    MPIDATA_DRAWS_LEFT   /* the caller has left the stream, or closed it; it may do so at any time */
} mpidata_draws;

typedef enum {
    MPIDATA_INTAKE_OPEN,
    MPIDATA_INTAKE_DROPS, /* the job is stopping: arriving samples are dropped */
    MPIDATA_INTAKE_GONE,  /* the scheduler has reported that all solvers are gone */
    MPIDATA_INTAKE_DONE   /* the receive thread has ended */
} mpidata_intake;

typedef struct {
    const mpidata_lock *lock; /* the trainer's */
    mpidata_draws draws;
    int cut_short;         /* the draws were ended by a stop, not by the end of the stream */
    int all_drawn;         /* a draw has reported the end of the stream, which was not cut short */
    mpidata_intake intake; /* only the receive thread changes it, and reads it without the lock */
} mpidata_phase;

/* The transitions. They never go back. */
static inline void mpidata_phase_draws_locked(mpidata_phase *phase, mpidata_draws next) {
    MPIDATA_LOCKED(phase->lock);
    if (phase->draws < next) phase->draws = next;
}

static inline void mpidata_phase_intake_locked(mpidata_phase *phase, mpidata_intake next) {
    MPIDATA_LOCKED(phase->lock);
    if (phase->intake < next) phase->intake = next;
}

static inline void mpidata_phase_end_draws_locked(mpidata_phase *phase) {
    mpidata_phase_draws_locked(phase, MPIDATA_DRAWS_ENDED);
}
static inline void mpidata_phase_cut_short_locked(mpidata_phase *phase) {
    if (phase->draws < MPIDATA_DRAWS_ENDED) phase->cut_short = 1;
    mpidata_phase_end_draws_locked(phase);
}
static inline void mpidata_phase_reopen_locked(mpidata_phase *phase) {
    MPIDATA_LOCKED(phase->lock);
    if (phase->draws == MPIDATA_DRAWS_ENDED && !phase->cut_short) phase->draws = MPIDATA_DRAWS_GO_ON;
}
static inline void mpidata_phase_tell_end_locked(mpidata_phase *phase) {
    if (phase->draws == MPIDATA_DRAWS_ENDED && !phase->cut_short) phase->all_drawn = 1;
    mpidata_phase_draws_locked(phase, MPIDATA_DRAWS_TOLD);
}
static inline void mpidata_phase_leave_locked(mpidata_phase *phase) {
    mpidata_phase_draws_locked(phase, MPIDATA_DRAWS_LEFT);
}
static inline void mpidata_phase_stop_locked(mpidata_phase *phase) {
    mpidata_phase_intake_locked(phase, MPIDATA_INTAKE_DROPS);
}
static inline void mpidata_phase_all_gone_locked(mpidata_phase *phase) {
    mpidata_phase_intake_locked(phase, MPIDATA_INTAKE_GONE);
}
static inline void mpidata_phase_done_locked(mpidata_phase *phase) {
    mpidata_phase_intake_locked(phase, MPIDATA_INTAKE_DONE);
}

static inline int mpidata_draws_ended(const mpidata_phase *phase) { return phase->draws >= MPIDATA_DRAWS_ENDED; }
static inline int mpidata_draws_told(const mpidata_phase *phase) { return phase->draws >= MPIDATA_DRAWS_TOLD; }
static inline int mpidata_draws_left(const mpidata_phase *phase) { return phase->draws == MPIDATA_DRAWS_LEFT; }
static inline int mpidata_stopping(const mpidata_phase *phase) { return phase->intake >= MPIDATA_INTAKE_DROPS; }
static inline int mpidata_all_gone(const mpidata_phase *phase) { return phase->intake >= MPIDATA_INTAKE_GONE; }
static inline int mpidata_receive_done(const mpidata_phase *phase) { return phase->intake == MPIDATA_INTAKE_DONE; }

#endif
