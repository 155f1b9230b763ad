/* The buffer's policies, on the numbers of slots alone, or of windows (windows.h): which sample is drawn, which is evicted, when one waits.
 *
 * fifo       oldest first, once each
 * firo       uniform among those present, once each; while samples still arrive never below the watermark
 * reservoir  uniform among those present, without removal; a new sample replaces a random one that was drawn before; when
 *            none was, it waits; not below the watermark; when no more arrive, draws remove until it is empty, unless it
 *            keeps
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
    int64_t refused;          /* the window for which there was no room; -1: none */
} mpidata_buffer;

/* 0, or -1 where memory is short. */
int mpidata_buffer_open(mpidata_buffer *buffer, int policy, int64_t capacity, int64_t watermark, uint64_t seed,
                        uint64_t stream);
void mpidata_buffer_close(mpidata_buffer *buffer);

/* Raise the capacity; 0, or -1 where memory is short. */
int mpidata_buffer_grow(mpidata_buffer *buffer, int64_t capacity);

/* Can no sample be added now? */
int mpidata_buffer_full(const mpidata_buffer *buffer);

/* Can this sample be added now? */
int mpidata_buffer_has_room(mpidata_buffer *buffer, int64_t number);

/* A window drawn before that must go before this one, for which there is room, is added; -1: none. */
int64_t mpidata_buffer_evict(mpidata_buffer *buffer, int64_t number);

/* Add a sample for which there is room; returns the slot it evicts, or -1. */
int64_t mpidata_buffer_add(mpidata_buffer *buffer, int64_t number);

/* No more samples will be added. */
void mpidata_buffer_end(mpidata_buffer *buffer);

/* Draws that may be made now without waiting for arrivals; INT64_MAX: without end (reservoir, before the end). */
int64_t mpidata_buffer_available(const mpidata_buffer *buffer);

/* The i-th slot in the policy's order: fifo oldest first, reservoir those never drawn first. */
int64_t mpidata_buffer_at(const mpidata_buffer *buffer, int64_t i);

/* Append a slot in that order, to a buffer that is filled as it once was; its caller sets `unseen`. */
void mpidata_buffer_put_back(mpidata_buffer *buffer, int64_t slot);

/* Windows: those of a reservoir that was filled so and had been drawn before, from number `unseen` on. */
void mpidata_buffer_see_again(mpidata_buffer *buffer);

/* One draw; 0 < available. *removed: the sample has left the buffer with it. */
int64_t mpidata_buffer_draw(mpidata_buffer *buffer, int *removed);

/* n draws from a reservoir that keeps, as many different ones as there are; 0 < count. `places` has room for n. */
void mpidata_buffer_draw_distinct(mpidata_buffer *buffer, int64_t n, int64_t *slots, int64_t *places);

/* fifo: draw the n slots from number `first` on together, if all are among the oldest `within` (or among all, where there
 * are fewer); the others stay in order. Returns whether it did. */
int mpidata_buffer_draw_together(mpidata_buffer *buffer, int64_t first, int64_t n, int64_t within);

#endif
