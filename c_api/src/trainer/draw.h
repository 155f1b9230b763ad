/* Drawing batches; called by Python (mpidata/native/library.py). Not installed. */
#ifndef MPIDATA_DRAW_H
#define MPIDATA_DRAW_H

#include "mpidata.h"

/* Set the number of samples per draw (1: single-sample mode). Once, before the first draw; the same on all trainers
 * (MPIDATA_ERR_ARGUMENT otherwise, and if the buffer is too small for it). Does not block. */
int mpidata_trainer_start(int64_t count);

/* Instead: all trainers together draw `total` samples, and this one its share (stream/shares/shares.h), which may grow when
 * others have died. mpidata_trainer_draw_share returns it for each batch. Not with a journal or a replay; at least the number
 * of trainers. */
int mpidata_trainer_start_together(int64_t total);

/* Draw the next batch, into memory that mpidata_trainer_draw, or before it mpidata_trainer_draw_numbers, then fills: *count
 * samples, shared by *trainers trainers. Returns what mpidata_trainer_draw would. */
int mpidata_trainer_draw_share(int64_t *count, int64_t *trainers, double timeout_s);

/* If samples have numbers (plan_text.h): draw the next batch, into memory that mpidata_trainer_draw then fills. numbers: for
 * each of n_numbers those of all steps, count x w int64. Returns what mpidata_trainer_draw would. */
int mpidata_trainer_draw_numbers(int64_t *numbers, double timeout_s);

/* Fill one batch of `count` samples (the count of mpidata_trainer_start); with windows of w = samples.window steps:
 *
 * fields      one pointer per field in job order, each to count x w x (declared shape) elements of the declared dtype; of a
 * field that varies, its shape with the sum of the lengths of all steps in place of the name: the values of the steps are
 * joined along it, and those of an index field count along the joined ones. NULL, of a constant: it is left out; else each
 * step has its simulation's parameters  count x n_parameters float64 time        count x w float64 step        count x w int64
 * simulation  count int64
 *
 * MPIDATA_SUCCESS; MPIDATA_END: the stream is over, the same batch number on all trainers; MPIDATA_CHECKPOINT: take a snapshot
 * (snapshot.h) and call again, the same batch number on all trainers; MPIDATA_MEET: the trainers must meet
 * (mpidata_trainer_meet), and call again; MPIDATA_ERR_AGAIN: nothing within timeout_s seconds (call again: lets the caller
 * handle signals); or an error that ended the job. Sleeps while it waits.
 *
 * With timeout_s < 0 a batch is drawn ahead of the training loop: MPIDATA_SUCCESS, or MPIDATA_ERR_AGAIN, for any reason, if
 * none may be drawn now. It counts as drawn from mpidata_trainer_had_ahead on: in statuses, reports, statistics and requested
 * checkpoints. A snapshot comes after all drawn batches, so draw with timeout_s >= 0 again when the loop has had all of them.
 * The same applies to mpidata_trainer_draw_share, _draw_numbers and _draw_page. */
int mpidata_trainer_draw(void *const *fields, double *parameters, double *time, int64_t *step, int64_t *simulation,
                         double timeout_s);

/* mpidata_trainer_draw with a choice of how samples with different lengths share a batch. shifted: index fields count along
 * the joined samples; else they are unchanged. fill NULL: fields that vary are packed, as there. Else they are padded:
 * field i is count x w x (its shape, with the greatest length of all steps in place of the name), and fill[i] is the address
 * of the element that fills the rest after each step's own values. */
int mpidata_trainer_draw_ragged(int shifted, const void *const *fill, void *const *fields, double *parameters, double *time,
                                int64_t *step, int64_t *simulation, double timeout_s);

/* Wait until the next batch can be drawn, as mpidata_trainer_draw does, but draw nothing. The same result on all trainers
 * that have drawn the same number of batches. */
int mpidata_trainer_ahead(double timeout_s);

/* Note that the loop has received the oldest batch that was drawn ahead; MPIDATA_ERR_ORDER: there is none. Any thread; does
 * not block. */
int mpidata_trainer_had_ahead(void);

/* In a job without a stream: count a batch from loaders, before the wait for it.
 *
 * MPIDATA_SUCCESS; MPIDATA_CHECKPOINT: take a snapshot and call again, at the same number on all trainers; MPIDATA_END: the
 * job is stopping; MPIDATA_ERR_AGAIN as above; or an error that ended the job. Sleeps only while the trainers agree on
 * the batch of a checkpoint. */
int mpidata_trainer_count_batch(double timeout_s);

/* mpidata_trainer_draw without a copy, if the next batch has its own memory (slots.h: mpidata_page_layout): *memory is its
 * address. The caller owns it, and may change it, until mpidata_trainer_give_back of *page. Its samples may be in another
 * order than those of mpidata_trainer_draw. NULL with MPIDATA_SUCCESS: it has none, nothing was drawn, and
 * mpidata_trainer_draw returns the batch at once. bytes: size of a batch that the caller expects. */
int mpidata_trainer_draw_page(int64_t bytes, void **memory, int64_t *page, double timeout_s);

/* Any thread; does not block. */
int mpidata_trainer_give_back(int64_t page);

#endif
