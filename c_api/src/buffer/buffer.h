/* The buffer's policies, on numbers of slots or of windows (windows.h): which sample is drawn or evicted, and when one waits.
 *
 * fifo       oldest first, once each
 * firo       uniform among those present, once each; while samples still arrive, never below the watermark
 * reservoir  uniform among those present, without removal; a new sample replaces one that was drawn before, or waits if there
 *            is none; not below the watermark; after the last arrival, draws remove until it is empty, unless it `keeps`
 *
 * Among a few random samples that were drawn, a reservoir replaces the one whose simulation has most samples in it. It thus
 * keeps samples of all simulations, and its batches are almost as if it held them all.
 *
 * A capacity in bytes counts the bytes of the samples. A buffer with no room for another sample is then above its watermark,
 * and there is always room for the samples of one batch, so that it can be drawn.
 *
 * firo and reservoir follow Meyer et al., "High throughput training of deep surrogates from large ensemble runs", SC 2023.
 * Draws and evictions are a function of (seed, stream, the sequence of arrivals and draws). Not thread-safe. */
#ifndef MPIDATA_BUFFER_H
#define MPIDATA_BUFFER_H

#include <stdint.h>

#include "base/random.h"
#include "buffer/windows.h"

typedef struct {
    int policy;
    int64_t capacity, watermark;
    mpidata_random random;
    int64_t *slots; /* fifo: a ring from `head`; reservoir: those never drawn first */
    int64_t head, count, unseen, allocated;
    unsigned char *marks; /* `allocated` of them; 0 except within mpidata_buffer_draw_distinct */
    int64_t added; /* since the start */
    int ended;
    int keeps; /* reservoir: draws do not empty it after the end */
    mpidata_windows *windows; /* to which the numbers belong, while the capacity counts their steps; NULL: slots */
    const mpidata_slots *memory; /* whose bytes the capacity counts; NULL: it counts samples, or steps of windows */
    int64_t bytes, unseen_bytes; /* of the samples; of those never drawn; windows count theirs themselves */
    int64_t batch;               /* with a capacity in bytes: samples of a batch; 0: not known yet */
    int64_t refused;             /* the sample for which there was no room, if sizes differ; -1: none */
    const mpidata_slots *known; /* gives the simulation of a reservoir's samples; NULL: unknown */
    int64_t *of_simulation;     /* number of samples of each simulation */
} mpidata_buffer;

/* Returns 0, or -1 if memory is exhausted, as do the others below. */
int mpidata_buffer_open(mpidata_buffer *buffer, int policy, int64_t capacity, int64_t watermark, uint64_t seed,
                        uint64_t stream);
void mpidata_buffer_close(mpidata_buffer *buffer);

/* Let the capacity of a buffer that was opened without one count the bytes of these slots. */
void mpidata_buffer_count_bytes(mpidata_buffer *buffer, const mpidata_slots *memory, int64_t capacity);

/* Let a reservoir without samples know the simulation, of n, of each sample; else all evictions are random. Call it once the
 * windows are known. Returns 0, or -1 if memory is exhausted. */
int mpidata_buffer_know_simulations(mpidata_buffer *buffer, const mpidata_slots *slots, int64_t n);

/* Take one out as a draw would, from a buffer that is not empty and from which nothing was drawn. */
int64_t mpidata_buffer_take_out(mpidata_buffer *buffer);

/* Raise the capacity; returns 0, or -1 if memory is exhausted. */
int mpidata_buffer_grow(mpidata_buffer *buffer, int64_t capacity);

/* Make room in the list for one more number; returns 0, or -1 if memory is exhausted. */
int mpidata_buffer_reserve(mpidata_buffer *buffer);

/* The fill in the unit of the capacity: samples, steps or bytes. */
int64_t mpidata_buffer_fill(const mpidata_buffer *buffer);

/* Bytes of a sample, as a capacity in bytes counts them. */
int64_t mpidata_buffer_bytes(const mpidata_buffer *buffer, int64_t number);

/* Samples that fit (with windows, steps); with a capacity in bytes, if all have the mean size of those present. */
int64_t mpidata_buffer_fits(const mpidata_buffer *buffer);

/* Whether no sample can be added now. */
int mpidata_buffer_full(const mpidata_buffer *buffer);

/* With a capacity in bytes: whether there is a batch, and another sample of the mean size would not fit. */
int mpidata_buffer_crowded(const mpidata_buffer *buffer);

/* Whether this sample can be added now. */
int mpidata_buffer_has_room(mpidata_buffer *buffer, int64_t number);

/* If sizes differ: a drawn sample that must be evicted before this one, for which there is room, is added; -1: none. */
int64_t mpidata_buffer_evict(mpidata_buffer *buffer, int64_t number);

/* Add a sample for which there is room, reserved; returns the slot it evicts, or -1. */
int64_t mpidata_buffer_add(mpidata_buffer *buffer, int64_t number);

/* Take out all except those marked in `kept`, by their place in that order. */
void mpidata_buffer_keep(mpidata_buffer *buffer, const char *kept);

/* No more samples will be added. */
void mpidata_buffer_end(mpidata_buffer *buffer);

/* More samples will be added after all. */
void mpidata_buffer_reopen(mpidata_buffer *buffer);

/* Draws that may be made now without waiting for arrivals; INT64_MAX: unlimited (reservoir, before the end). */
int64_t mpidata_buffer_available(const mpidata_buffer *buffer);

/* The i-th slot in the policy's order: fifo oldest first, reservoir those never drawn first. */
int64_t mpidata_buffer_at(const mpidata_buffer *buffer, int64_t i);

/* Append a slot, reserved, in that order to a buffer that is being restored; the caller sets `unseen`. */
void mpidata_buffer_put_back(mpidata_buffer *buffer, int64_t slot);

/* If sizes differ: mark the samples of a restored reservoir from number `unseen` on as drawn. */
void mpidata_buffer_see_again(mpidata_buffer *buffer);

/* One draw; 0 < available. *removed: whether the sample has left the buffer. */
int64_t mpidata_buffer_draw(mpidata_buffer *buffer, int *removed);

/* n draws from a reservoir that keeps, of different samples as far as possible; 0 < count. `places` has room for n. */
void mpidata_buffer_draw_distinct(mpidata_buffer *buffer, int64_t n, int64_t *slots, int64_t *places);

/* fifo: draw the n slots from number `first` on together, if all are among the oldest `within` (or among all, if there are
 * fewer); the others stay in order. Returns whether they were drawn. */
int mpidata_buffer_draw_together(mpidata_buffer *buffer, int64_t first, int64_t n, int64_t within);

#endif
