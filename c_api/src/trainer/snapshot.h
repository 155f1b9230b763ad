/* Checkpoints of a trainer; called by Python (mpidata/checkpoint/). Not installed.
 *
 * When mpidata_trainer_draw returns MPIDATA_CHECKPOINT, the caller takes a snapshot. This lists and pins the samples this
 * trainer holds, without copying them, and copies the ledger; training then continues. Slots never change once they are
 * whole, so another thread writes them, releases the pins piece by piece, and reports the result with
 * mpidata_trainer_snapshot_end. Until then pinned slots are not reused: at most the memory of another buffer is needed.
 *
 * A trainer that continues a checkpoint is filled between mpidata_trainer_open and mpidata_trainer_begin. */
#ifndef MPIDATA_SNAPSHOT_H
#define MPIDATA_SNAPSHOT_H

#include "mpidata.h"
#include "python/structures.h"
#include "trainer/constants/held.h"

/* Ask the scheduler for a checkpoint. Any thread; does not block. */
int mpidata_trainer_checkpoint(void);

/* Take the snapshot that draw has requested. Blocks the receive thread only while it lists the samples. */
int mpidata_trainer_snapshot_take(mpidata_snapshot *snapshot);

/* parameters: all steps x n_parameters float64; time float64, step and simulation int64, one for each step. */
int mpidata_trainer_snapshot_samples(double *parameters, double *time, int64_t *step, int64_t *simulation);

/* steps x n_numbers int64. */
int mpidata_trainer_snapshot_numbers(int64_t *numbers);

/* For each sample, the numbers of its samples_window steps. */
int mpidata_trainer_snapshot_windows(int64_t *steps);
int mpidata_trainer_snapshot_scales(double *moments); /* what this trainer has received: plan.n_moments mpidata_moments */

/* The constants (held.h) of the steps: *n of them, each with a reference for the caller; of[i]: that of step i, -1: none. Both
 * have room for all steps. */
int mpidata_trainer_snapshot_constants(mpidata_try_constants **constants, int64_t *n, int64_t *of);

/* Write `field` of steps first ... first+count-1, contiguously, to a file from byte `offset` on. Blocks on the file. */
int mpidata_trainer_snapshot_write(int file, int field, int64_t first, int64_t count, int64_t offset);

/* Steps first ... first+count-1 are written for good. */
int mpidata_trainer_snapshot_release(int64_t first, int64_t count);

/* The ledger, as from mpidata_ledger_export. */
int mpidata_trainer_snapshot_ledger(int64_t *steps, int64_t *whole, uint8_t *complete, int64_t *words, uint64_t *bits);

/* The checkpoint has been written, bytes and the SHA-256 in `text`; or it failed, with the sentence in `text`, also if no
 * snapshot was taken. Reports this to the scheduler. */
int mpidata_trainer_snapshot_end(int failed, int64_t bytes, const char *text);

/* -- between mpidata_trainer_open and mpidata_trainer_begin, in this order -- */

/* Continue at the state's batch, with its generator; stream > 0: with another generator of the job's seed. */
int mpidata_trainer_restore(const mpidata_snapshot *state, uint64_t stream);

/* Make constants of a simulation: fields[i] has the values of field i, with the lengths in numbers; NULL: not a constant. The
 * caller has a reference. */
int mpidata_trainer_restore_constants(int64_t simulation, int64_t by_try, const void *const *fields, const int64_t *numbers,
                                      mpidata_try_constants **constants);

/* Append samples to a place: fields[i] has the values of all samples, contiguously (C order, its own lengths), numbers count x
 * n_numbers int64 (NULL: none), constants those of each sample (NULL: none). They are this trainer's share, except those kept
 * to be repeated, which any trainer may have drawn. */
int mpidata_trainer_restore_samples(int place, int64_t count, const void *const *fields, const double *parameters,
                                    const double *time, const int64_t *step, const int64_t *simulation, const int64_t *numbers,
                                    mpidata_try_constants *const *constants);

/* With windows: the steps come first, into MPIDATA_PLACE_NONE, then windows of them go into places: samples_window numbers
 * each, in the order in which the steps came. */
int mpidata_trainer_restore_windows(int place, int64_t count, const int64_t *steps);

/* The ledger, as mpidata_ledger_import takes it; then the steps of the other simulations that it has. */
int mpidata_trainer_restore_ledger(const int64_t *steps);
int mpidata_trainer_restore_received(int64_t count, const int64_t *simulation, const int64_t *step);

/* In an elastic job: samples that were never drawn and that other trainers take over. The last call. */
int mpidata_trainer_restore_elsewhere(int64_t count, const int64_t *simulation, const int64_t *step);

#endif
