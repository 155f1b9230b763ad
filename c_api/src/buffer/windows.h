/* Windows of several steps, each of which is a sample (samples.window > 1). A slot holds one step, which several windows may
 * share: it is given back when no window needs it. The buffer then holds the numbers of windows.
 *
 * Steps of a try wait here until their windows are whole; steps without a whole window are dropped with their try, because no
 * window mixes two tries. The ledger records whole windows by their first steps. Not thread-safe. */
#ifndef MPIDATA_WINDOWS_H
#define MPIDATA_WINDOWS_H

#include "buffer/ledger.h"
#include "buffer/slots.h"

typedef struct mpidata_try mpidata_try;

enum { MPIDATA_TRY_CHAINS = 256 };

typedef struct {
    const mpidata_plan *plan; /* NULL: a sample is one step, and none of this is used */
    mpidata_ledger *ledger;
    mpidata_slots *slots;
    int64_t *steps; /* slots of window n from steps[n * samples_window] on */
    int *draws;     /* of each window; -1: not counted */
    int64_t *free;  /* numbers of unused windows */
    int64_t n_free, n, allocated;
    int64_t *whole; /* windows that the last mpidata_windows_add has made whole */
    int64_t n_whole, whole_allocated;
    int in_bytes; /* the buffer's capacity counts the bytes of steps, not the steps */
    int64_t in_buffer, unseen; /* steps, or their bytes, of the buffer's windows; of those that were never drawn */
    mpidata_try *tries[MPIDATA_TRY_CHAINS]; /* with waiting steps */
} mpidata_windows;

void mpidata_windows_open(mpidata_windows *windows, const mpidata_plan *plan, mpidata_ledger *ledger, mpidata_slots *slots);
void mpidata_windows_close(mpidata_windows *windows);

/* Whether a window of this trainer with this step is not whole yet. */
int mpidata_windows_want(const mpidata_windows *windows, int64_t simulation, int64_t step);

/* Take a slot with a step of a try of a group. Windows that become whole are entered in the ledger, and listed in `whole`
 * by their first steps; each is the caller's until it is given back. */
int mpidata_windows_add(mpidata_windows *windows, int group, int64_t by_try, int64_t slot);

/* Drop waiting steps: those of a simulation's tries up to this one, of a group, or all. */
void mpidata_windows_drop_tries(mpidata_windows *windows, int64_t simulation, int64_t by_try);
void mpidata_windows_drop_group(mpidata_windows *windows, int group);
void mpidata_windows_drop_all(mpidata_windows *windows);

/* A new window of these slots; *number is the caller's. */
int mpidata_windows_make(mpidata_windows *windows, const int64_t *slots, int64_t *number);

/* Its samples_window slots, valid until the next call that makes windows. */
const int64_t *mpidata_windows_steps(const mpidata_windows *windows, int64_t number);

void mpidata_windows_give_back(mpidata_windows *windows, int64_t number);

/* Drop one holder of a slot; the last one gives it back. */
void mpidata_windows_let_go(mpidata_windows *windows, int64_t slot);

/* -- the buffer's account: a window enters, is drawn for the first time, leaves ------------------------------------- */

void mpidata_windows_enter(mpidata_windows *windows, int64_t number);
void mpidata_windows_see(mpidata_windows *windows, int64_t number);
void mpidata_windows_leave(mpidata_windows *windows, int64_t number);

/* What it would add to `in_buffer` and to `unseen`. */
int64_t mpidata_windows_new_steps(const mpidata_windows *windows, int64_t number);
int64_t mpidata_windows_new_unseen(const mpidata_windows *windows, int64_t number);

/* Bytes of all its steps. */
int64_t mpidata_windows_size(const mpidata_windows *windows, int64_t number);

#endif
