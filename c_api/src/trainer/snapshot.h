/* Checkpoints of a trainer: what Python calls (mpidata/checkpoint/). Not installed.
 *
 * When mpidata_trainer_draw gives MPIDATA_CHECKPOINT, the caller takes a snapshot. That lists and pins the samples this
 * trainer holds, without copying them, and copies the ledger; training then goes on. Slots never change once they are
 * whole, so another thread writes them out, gives the pins back piece by piece, and says with mpidata_trainer_snapshot_end
 * how it went. Until then pinned slots are not used again: at most another buffer's worth of memory is needed.
 *
 * A trainer that continues a checkpoint is filled between mpidata_trainer_open and mpidata_trainer_begin. */
#ifndef MPIDATA_SNAPSHOT_H
#define MPIDATA_SNAPSHOT_H

#include "mpidata.h"
#include "wire/statistics.h"

/* Where a trainer holds samples. Those of a snapshot are numbered in this order. */
enum {
    MPIDATA_PLACE_BUFFER = 0, /* in the policy's order: fifo oldest first; reservoir those never drawn first */
    MPIDATA_PLACE_WAITING,    /* for room in the buffer, oldest first */
    MPIDATA_PLACE_RETIRED,    /* drawn last, kept for the tail to repeat */
    MPIDATA_PLACE_VALIDATION,
    MPIDATA_PLACES,
    MPIDATA_PLACE_NONE = MPIDATA_PLACES /* steps of windows that are restored next */
};

typedef struct {
    int64_t number;                /* of the checkpoint */
    int64_t batch;                 /* batches drawn */
    int64_t batches_of_all;        /* by all trainers in all, however many they were in earlier starts of the run */
    int64_t count[4];              /* samples in each place */
    int64_t steps;                 /* in all: a sample each, or those of windows, each once */
    int64_t unseen;                /* the first so many of the buffer were never drawn (reservoir) */
    int64_t next_retired;          /* place among the retired that is used next */
    int64_t capacity;              /* of the buffer, with what relief has added */
    int64_t added;                 /* samples that have entered the buffer since the start */
    uint64_t random[4];            /* state of the generator of draws */
    int64_t ledger_words;          /* length of `bits` of mpidata_trainer_snapshot_ledger */
    mpidata_statistics statistics;
} mpidata_snapshot;

/* Ask the scheduler for a checkpoint. Any thread; does not block. */
int mpidata_trainer_checkpoint(void);

/* Take the snapshot that draw has asked for. Holds the receive thread up while it lists the samples, no longer. */
int mpidata_trainer_snapshot_take(mpidata_snapshot *snapshot);

/* parameters: all steps x n_parameters float64; time float64, step and simulation int64, one for each step. */
int mpidata_trainer_snapshot_samples(double *parameters, double *time, int64_t *step, int64_t *simulation);

/* Of each sample the numbers of its samples_window steps. */
int mpidata_trainer_snapshot_windows(int64_t *steps);
int mpidata_trainer_snapshot_scales(double *moments); /* what this trainer has received: plan.n_moments mpidata_moments */

/* Write `field` of steps first ... first+count-1 to a file from byte `offset` on. Blocks on the file. */
int mpidata_trainer_snapshot_write(int file, int field, int64_t first, int64_t count, int64_t offset);

/* Steps first ... first+count-1 are written for good. */
int mpidata_trainer_snapshot_release(int64_t first, int64_t count);

/* The ledger as mpidata_ledger_export gives it. */
int mpidata_trainer_snapshot_ledger(int64_t *steps, int64_t *whole, uint8_t *complete, int64_t *words, uint64_t *bits);

/* The checkpoint has been written, bytes and the SHA-256 in `text`; or it failed, with the sentence in `text`, also when
 * no snapshot was taken. Tells the scheduler. */
int mpidata_trainer_snapshot_end(int failed, int64_t bytes, const char *text);

/* -- between mpidata_trainer_open and mpidata_trainer_begin, in this order -- */

/* Continue at the state's batch, with its generator; stream > 0: with another generator of the job's seed. */
int mpidata_trainer_restore(const mpidata_snapshot *state, uint64_t stream);

/* Put samples into a place, behind those that are there: fields[i] has count x (declared shape) elements. They are this
 * trainer's share, but for those kept to be repeated, which may have been drawn by any trainer. */
int mpidata_trainer_restore_samples(int place, int64_t count, const void *const *fields, const double *parameters,
                                    const double *time, const int64_t *step, const int64_t *simulation);

/* With windows: the steps come first, into MPIDATA_PLACE_NONE, then windows of them go into places: samples_window numbers
 * each, in the order in which the steps came. */
int mpidata_trainer_restore_windows(int place, int64_t count, const int64_t *steps);

/* The ledger, as mpidata_ledger_import takes it; then the steps of the other simulations that it has. */
int mpidata_trainer_restore_ledger(const int64_t *steps);
int mpidata_trainer_restore_received(int64_t count, const int64_t *simulation, const int64_t *step);

#endif
