#include "buffer/buffer.h"

#include <stdlib.h>
#include <string.h>

#include "containers/array.h"
#include "wire/plan.h"

enum { CANDIDATES = 8 };

int mpidata_buffer_open(mpidata_buffer *buffer, int policy, int64_t capacity, int64_t watermark, uint64_t seed,
                        uint64_t stream) {
    memset(buffer, 0, sizeof *buffer);
    buffer->policy = policy;
    buffer->watermark = watermark;
    buffer->refused = -1;
    mpidata_random_seed(&buffer->random, seed, stream);
    return mpidata_buffer_grow(buffer, capacity);
}

void mpidata_buffer_close(mpidata_buffer *buffer) {
    free(buffer->slots);
    free(buffer->marks);
    free(buffer->of_simulation);
    memset(buffer, 0, sizeof *buffer);
}

int mpidata_buffer_know_simulations(mpidata_buffer *buffer, const mpidata_slots *slots, int64_t n) {
    if (buffer->policy != MPIDATA_POLICY_RESERVOIR) return 0;
    buffer->of_simulation = calloc((size_t)(n > 0 ? n : 1), sizeof *buffer->of_simulation);
    if (buffer->of_simulation) buffer->known = slots;
    return buffer->of_simulation ? 0 : -1;
}

/* All steps of a window belong to one simulation. */
static int64_t *count_of_simulation(const mpidata_buffer *buffer, int64_t number) {
    const int64_t slot = buffer->windows ? *mpidata_windows_steps(buffer->windows, number) : number;
    return &buffer->of_simulation[*buffer->known->slots[slot]->simulation];
}

void mpidata_buffer_count_bytes(mpidata_buffer *buffer, const mpidata_slots *memory, int64_t capacity) {
    buffer->memory = memory;
    buffer->capacity = capacity;
}

static int list_more(mpidata_buffer *buffer, int64_t n) {
    int64_t *grown = calloc((size_t)n, sizeof *grown);
    unsigned char *marks = calloc((size_t)n, 1);
    if (!grown || !marks) {
        free(grown);
        free(marks);
        return -1;
    }
    for (int64_t i = 0; i < buffer->count; i++) grown[i] = buffer->slots[(buffer->head + i) % buffer->allocated];
    free(buffer->slots);
    free(buffer->marks);
    buffer->slots = grown;
    buffer->marks = marks;
    buffer->head = 0;
    buffer->allocated = n;
    return 0;
}

int mpidata_buffer_grow(mpidata_buffer *buffer, int64_t capacity) {
    if (!buffer->memory && capacity > buffer->allocated && list_more(buffer, capacity)) return -1;
    buffer->capacity = capacity;
    return 0;
}

int mpidata_buffer_reserve(mpidata_buffer *buffer) {
    if (buffer->count < buffer->allocated) return 0;
    return list_more(buffer, mpidata_array_room(buffer->allocated, buffer->count + 1, 256));
}

/* -- samples that differ in size: windows, or a capacity in bytes --------------------------------------------------- */

static int differ_in_size(const mpidata_buffer *buffer) { return buffer->windows || buffer->memory; }

static int64_t size_of(const mpidata_buffer *buffer, int64_t number) {
    return mpidata_slot_size(buffer->memory, buffer->memory->slots[number]);
}

int64_t mpidata_buffer_bytes(const mpidata_buffer *buffer, int64_t number) {
    return buffer->windows ? mpidata_windows_size(buffer->windows, number) : size_of(buffer, number);
}

int64_t mpidata_buffer_fill(const mpidata_buffer *buffer) {
    return buffer->windows ? buffer->windows->in_buffer : buffer->memory ? buffer->bytes : buffer->count;
}

int64_t mpidata_buffer_fits(const mpidata_buffer *buffer) {
    const int64_t fill = mpidata_buffer_fill(buffer);
    if (!buffer->memory) return buffer->capacity;
    const int64_t n = fill ? (int64_t)((double)buffer->capacity / (double)fill * (double)buffer->count) : 1;
    return n > buffer->batch ? n : buffer->batch; /* which always fits */
}

/* Samples that a reservoir must not evict; for other policies, all. */
static int64_t kept(const mpidata_buffer *buffer) {
    if (buffer->policy != MPIDATA_POLICY_RESERVOIR) return mpidata_buffer_fill(buffer);
    return buffer->windows ? buffer->windows->unseen : buffer->unseen_bytes;
}

/* Whether there are fewer samples than a batch, for which there must be room. */
static int lacks_batch(const mpidata_buffer *buffer) { return buffer->memory && buffer->count < buffer->batch; }

static int fits(const mpidata_buffer *buffer, int64_t number) {
    int64_t added;
    if (lacks_batch(buffer)) return 1;
    if (!buffer->windows)
        added = size_of(buffer, number);
    else if (buffer->policy == MPIDATA_POLICY_RESERVOIR)
        added = mpidata_windows_new_unseen(buffer->windows, number);
    else
        added = mpidata_windows_new_steps(buffer->windows, number);
    return kept(buffer) + added <= buffer->capacity;
}

static void enter(mpidata_buffer *buffer, int64_t number) {
    if (buffer->known) ++*count_of_simulation(buffer, number);
    if (buffer->windows) {
        mpidata_windows_enter(buffer->windows, number);
    } else if (buffer->memory) {
        buffer->bytes += size_of(buffer, number);
        buffer->unseen_bytes += size_of(buffer, number);
    }
}

/* Note that a sample was drawn for the first time, or taken out. */
static void see(mpidata_buffer *buffer, int64_t number) {
    if (buffer->windows)
        mpidata_windows_see(buffer->windows, number);
    else if (buffer->memory)
        buffer->unseen_bytes -= size_of(buffer, number);
}

static int64_t take_out(mpidata_buffer *buffer, int64_t number) {
    if (buffer->known) --*count_of_simulation(buffer, number);
    if (buffer->windows)
        mpidata_windows_leave(buffer->windows, number);
    else if (buffer->memory)
        buffer->bytes -= size_of(buffer, number);
    return number;
}

/* The place of a drawn sample to evict: of a few random ones, the one whose simulation has most samples. */
static int64_t place_to_evict(mpidata_buffer *buffer) {
    int64_t chosen = -1, most = -1;
    for (int i = 0; i < (buffer->known ? CANDIDATES : 1); i++) {
        const int64_t place = buffer->unseen + mpidata_random_below(&buffer->random, buffer->count - buffer->unseen);
        const int64_t count = buffer->known ? *count_of_simulation(buffer, buffer->slots[place]) : 0;
        if (count <= most) continue;
        chosen = place;
        most = count;
    }
    return chosen;
}

/* -- arrivals ------------------------------------------------------------------------------------------------------- */

int mpidata_buffer_full(const mpidata_buffer *buffer) {
    if (lacks_batch(buffer)) return 0;
    if (differ_in_size(buffer))
        return kept(buffer) >= buffer->capacity || (buffer->refused >= 0 && !fits(buffer, buffer->refused));
    if (buffer->count < buffer->capacity) return 0;
    return buffer->policy != MPIDATA_POLICY_RESERVOIR || buffer->unseen == buffer->count;
}

int mpidata_buffer_crowded(const mpidata_buffer *buffer) {
    if (!buffer->memory || !buffer->count || lacks_batch(buffer)) return 0;
    const int64_t fill = mpidata_buffer_fill(buffer);
    return fill + fill / buffer->count >= buffer->capacity || mpidata_buffer_full(buffer);
}

int mpidata_buffer_has_room(mpidata_buffer *buffer, int64_t number) {
    if (!differ_in_size(buffer)) return !mpidata_buffer_full(buffer);
    const int room = fits(buffer, number);
    buffer->refused = room ? -1 : number;
    return room;
}

/* With a capacity in bytes, a batch stays, because it may have been promised. */
int64_t mpidata_buffer_evict(mpidata_buffer *buffer, int64_t number) {
    if (!differ_in_size(buffer) || buffer->count == buffer->unseen || lacks_batch(buffer)) return -1;
    if (buffer->policy != MPIDATA_POLICY_RESERVOIR) return -1;
    const int64_t added = buffer->windows ? mpidata_windows_new_steps(buffer->windows, number) : size_of(buffer, number);
    if (mpidata_buffer_fill(buffer) + added <= buffer->capacity) return -1;
    const int64_t place = place_to_evict(buffer), evicted = buffer->slots[place];
    buffer->slots[place] = buffer->slots[--buffer->count];
    return take_out(buffer, evicted);
}

int64_t mpidata_buffer_add(mpidata_buffer *buffer, int64_t slot) {
    int64_t *slots = buffer->slots, evicted = -1;
    buffer->added++;
    enter(buffer, slot);
    if (buffer->policy != MPIDATA_POLICY_RESERVOIR) {
        slots[(buffer->head + buffer->count++) % buffer->allocated] = slot;
        return -1;
    }
    int64_t place = buffer->count;
    if (differ_in_size(buffer) || buffer->count < buffer->capacity) {
        buffer->count++;
    } else {
        place = place_to_evict(buffer);
        evicted = take_out(buffer, slots[place]);
    }
    slots[place] = slots[buffer->unseen];
    slots[buffer->unseen++] = slot;
    return evicted;
}

int64_t mpidata_buffer_at(const mpidata_buffer *buffer, int64_t i) {
    return buffer->slots[(buffer->head + i) % buffer->allocated];
}

void mpidata_buffer_keep(mpidata_buffer *buffer, const char *kept) {
    const int64_t count = buffer->count, unseen = buffer->policy == MPIDATA_POLICY_RESERVOIR ? buffer->unseen : count;
    int64_t n = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t number = mpidata_buffer_at(buffer, i);
        if (!kept[i]) {
            if (i < unseen) see(buffer, number);
            (void)take_out(buffer, number);
            buffer->unseen -= buffer->policy == MPIDATA_POLICY_RESERVOIR && i < unseen;
        } else {
            buffer->slots[(buffer->head + n++) % buffer->allocated] = number;
        }
    }
    buffer->count = n;
    buffer->refused = -1; /* it may also be given back, and there is more room */
}

void mpidata_buffer_put_back(mpidata_buffer *buffer, int64_t slot) {
    buffer->slots[(buffer->head + buffer->count++) % buffer->allocated] = slot;
    enter(buffer, slot);
}

void mpidata_buffer_end(mpidata_buffer *buffer) { buffer->ended = 1; }

void mpidata_buffer_reopen(mpidata_buffer *buffer) { buffer->ended = 0; }

int64_t mpidata_buffer_available(const mpidata_buffer *buffer) {
    if (buffer->ended) return buffer->keeps && buffer->count ? INT64_MAX : buffer->count;
    const int crowded = mpidata_buffer_crowded(buffer);
    if (buffer->policy == MPIDATA_POLICY_RESERVOIR)
        return buffer->count > 0 && (buffer->count >= buffer->watermark || crowded) ? INT64_MAX : 0;
    int64_t above = buffer->count - buffer->watermark;
    if (crowded && above < buffer->batch) above = buffer->batch;
    return above > 0 ? above : 0;
}

void mpidata_buffer_see_again(mpidata_buffer *buffer) {
    if (buffer->policy != MPIDATA_POLICY_RESERVOIR) return;
    for (int64_t i = buffer->unseen; i < buffer->count; i++) see(buffer, mpidata_buffer_at(buffer, i));
}

static int64_t draw_reservoir(mpidata_buffer *buffer, int *removed) {
    int64_t *slots = buffer->slots, i = mpidata_random_below(&buffer->random, buffer->count), slot = slots[i];
    *removed = buffer->ended;
    if (i < buffer->unseen) { /* swap it to the border, which then moves: the sample is now among the seen ones */
        slots[i] = slots[--buffer->unseen];
        slots[i = buffer->unseen] = slot;
        see(buffer, slot);
    }
    if (!buffer->ended) return slot;
    slots[i] = slots[--buffer->count];
    return take_out(buffer, slot);
}

int64_t mpidata_buffer_draw(mpidata_buffer *buffer, int *removed) {
    if (buffer->policy == MPIDATA_POLICY_RESERVOIR) return draw_reservoir(buffer, removed);
    int64_t *slots = buffer->slots, slot;
    *removed = 1;
    if (buffer->policy == MPIDATA_POLICY_FIFO) {
        slot = slots[buffer->head];
        buffer->head = (buffer->head + 1) % buffer->allocated;
        buffer->count--;
        see(buffer, slot);
        return take_out(buffer, slot);
    }
    int64_t i = mpidata_random_below(&buffer->random, buffer->count);
    slot = slots[i];
    slots[i] = slots[--buffer->count];
    see(buffer, slot);
    return take_out(buffer, slot);
}

int64_t mpidata_buffer_take_out(mpidata_buffer *buffer) {
    int removed;
    const int ended = buffer->ended;
    buffer->ended = 1; /* draws of a reservoir now remove */
    const int64_t number = mpidata_buffer_draw(buffer, &removed);
    buffer->ended = ended;
    return number;
}

static int downwards(const void *a, const void *b) {
    int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;
    return (one < other) - (one > other);
}

/* Draw n <= count different samples. Robert Floyd's algorithm (Bentley, Programming Pearls: a sample of brilliance, CACM 1987)
 * finds the places in n steps. They are visited from last to first, so that samples moved to the border stay behind them. */
static void draw_different(mpidata_buffer *buffer, int64_t n, int64_t *drawn, int64_t *places) {
    int64_t *slots = buffer->slots;
    for (int64_t i = 0, last = buffer->count - n; i < n; i++, last++) {
        int64_t place = mpidata_random_below(&buffer->random, last + 1);
        if (buffer->marks[place]) place = last;
        buffer->marks[place] = 1;
        places[i] = place;
    }
    qsort(places, (size_t)n, sizeof *places, downwards);
    for (int64_t i = 0; i < n; i++) {
        int64_t place = places[i], slot = slots[place];
        buffer->marks[place] = 0;
        drawn[i] = slot;
        if (place >= buffer->unseen) continue;
        slots[place] = slots[--buffer->unseen];
        slots[buffer->unseen] = slot;
        see(buffer, slot);
    }
    for (int64_t i = n - 1; i > 0; i--) { /* in a random order */
        int64_t j = mpidata_random_below(&buffer->random, i + 1), slot = drawn[i];
        drawn[i] = drawn[j];
        drawn[j] = slot;
    }
}

void mpidata_buffer_draw_distinct(mpidata_buffer *buffer, int64_t n, int64_t *slots, int64_t *places) {
    for (int64_t done = 0, now; done < n; done += now) {
        now = n - done < buffer->count ? n - done : buffer->count;
        draw_different(buffer, now, slots + done, places);
    }
}

int mpidata_buffer_draw_together(mpidata_buffer *buffer, int64_t first, int64_t n, int64_t within) {
    int64_t end = 0, found = 0;
    if (within > buffer->count) within = buffer->count;
    for (; end < within && found < n; end++) {
        int64_t slot = mpidata_buffer_at(buffer, end);
        found += slot >= first && slot < first + n;
    }
    if (found < n) return 0;
    for (int64_t from = end - 1, to = end - 1; from >= 0; from--) { /* those before the last one found move up to it */
        int64_t slot = mpidata_buffer_at(buffer, from);
        if (slot >= first && slot < first + n) continue;
        buffer->slots[(buffer->head + to--) % buffer->allocated] = slot;
    }
    buffer->head = (buffer->head + n) % buffer->allocated;
    buffer->count -= n;
    return 1;
}
