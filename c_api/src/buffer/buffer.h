/* The buffer's policies, on the numbers of slots alone, or of windows (windows.h): which sample is drawn, which is evicted, when one waits.
 *
 * fifo       oldest first, once each
 * firo       uniform among those present, once each; while samples still arrive never below the watermark
 * reservoir  uniform among those present, without removal; a new sample replaces one that was drawn before; when none was,
 *            it waits; not below the watermark; when no more arrive, draws remove until it is empty, unless it keeps
 *
 * Of a few random ones that were drawn, a reservoir replaces the one whose simulation has most samples in it. So it keeps
 * samples of all simulations, and its batches are almost as if it held them all.
 *
 * A capacity in bytes counts the bytes of the samples. A buffer with no room for one more is then above its watermark, and
 * there is always room for the samples of one batch, so that it can be drawn.
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
    int64_t *slots; /* fifo: a ring from `head`; reservoir: those never drawn come first */
    int64_t head, count, unseen, allocated;
    unsigned char *marks; /* as many as `allocated`; 0 but within mpidata_buffer_draw_distinct */
    int64_t added; /* since the start */
    int ended;
    int keeps; /* reservoir: draws do not empty it when it has ended */
    mpidata_windows *windows; /* whose numbers these are, while the capacity counts their steps; NULL: slots */
    const mpidata_slots *memory; /* whose bytes the capacity counts; NULL: it counts samples, or the steps of windows */
    int64_t bytes, unseen_bytes; /* of the samples; of those never drawn; windows count theirs themselves */
    int64_t batch;               /* of a capacity in bytes: samples of a batch; 0: not known yet */
    int64_t refused;             /* the sample for which there was no room, if they differ in size; -1: none */
    const mpidata_slots *known; /* of which simulation a reservoir's samples are; NULL: nobody knows */
    int64_t *of_simulation;     /* how many there are of each */
} mpidata_buffer;

/* 0, or -1 where memory is short. */
int mpidata_buffer_open(mpidata_buffer *buffer, int policy, int64_t capacity, int64_t watermark, uint64_t seed,
                        uint64_t stream);
void mpidata_buffer_close(mpidata_buffer *buffer);

/* Have the capacity of a buffer that was opened without one count the bytes of these slots. */
void mpidata_buffer_count_bytes(mpidata_buffer *buffer, const mpidata_slots *memory, int64_t capacity);

/* Have a reservoir that has no samples yet know of which of n simulations each is, else all evictions are random; call it
 * once the windows are known. 0, or -1 where memory is short. */
int mpidata_buffer_know_simulations(mpidata_buffer *buffer, const mpidata_slots *slots, int64_t n);

/* Take one out as its draws would, of a buffer that has any, and of which nothing was drawn. */
int64_t mpidata_buffer_take_out(mpidata_buffer *buffer);

/* Raise the capacity; 0, or -1 where memory is short. */
int mpidata_buffer_grow(mpidata_buffer *buffer, int64_t capacity);

/* Make sure that one more number can be listed; 0, or -1 where memory is short. */
int mpidata_buffer_reserve(mpidata_buffer *buffer);

/* What the capacity counts of what is there: samples, steps or bytes. */
int64_t mpidata_buffer_fill(const mpidata_buffer *buffer);

/* Bytes of a sample, as a capacity in bytes counts them. */
int64_t mpidata_buffer_bytes(const mpidata_buffer *buffer, int64_t number);

/* Samples that fit; of a capacity in bytes, if all have the mean size of those that are there; of windows, steps. */
int64_t mpidata_buffer_fits(const mpidata_buffer *buffer);

/* Can no sample be added now? */
int mpidata_buffer_full(const mpidata_buffer *buffer);

/* Of a capacity in bytes: there is a batch, and another sample of the mean size would not fit beside all that are there. */
int mpidata_buffer_crowded(const mpidata_buffer *buffer);

/* Can this sample be added now? */
int mpidata_buffer_has_room(mpidata_buffer *buffer, int64_t number);

/* A sample drawn before that must go before this one, for which there is room, is added, if they differ in size; -1: none. */
int64_t mpidata_buffer_evict(mpidata_buffer *buffer, int64_t number);

/* Add a sample for which there is room, reserved; returns the slot it evicts, or -1. */
int64_t mpidata_buffer_add(mpidata_buffer *buffer, int64_t number);

/* Take out all but those that are marked, by their place in that order. */
void mpidata_buffer_keep(mpidata_buffer *buffer, const char *kept);

/* No more samples will be added. */
void mpidata_buffer_end(mpidata_buffer *buffer);

/* More will be added, after all. */
void mpidata_buffer_reopen(mpidata_buffer *buffer);

/* Draws that may be made now without waiting for arrivals; INT64_MAX: without end (reservoir, before the end). */
int64_t mpidata_buffer_available(const mpidata_buffer *buffer);

/* The i-th slot in the policy's order: fifo oldest first, reservoir those never drawn first. */
int64_t mpidata_buffer_at(const mpidata_buffer *buffer, int64_t i);

/* Append a slot in that order, reserved, to a buffer that is filled as it once was; its caller sets `unseen`. */
void mpidata_buffer_put_back(mpidata_buffer *buffer, int64_t slot);

/* Of samples that differ in size: those of a reservoir that was filled so and had been drawn before, from number `unseen` on. */
void mpidata_buffer_see_again(mpidata_buffer *buffer);

/* One draw; 0 < available. *removed: the sample has left the buffer with it. */
int64_t mpidata_buffer_draw(mpidata_buffer *buffer, int *removed);

/* n draws from a reservoir that keeps, as many different ones as there are; 0 < count. `places` has room for n. */
void mpidata_buffer_draw_distinct(mpidata_buffer *buffer, int64_t n, int64_t *slots, int64_t *places);

/* fifo: draw the n slots from number `first` on together, if all are among the oldest `within` (or among all, where there
 * are fewer); the others stay in order. Returns whether it did. */
int mpidata_buffer_draw_together(mpidata_buffer *buffer, int64_t first, int64_t n, int64_t within);

#endif
