#define _GNU_SOURCE
#include "parcel/parcel.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/arena.h"
#include "base/lock.h"
#include "containers/list.h"

int64_t mpidata_chunk_bytes = (int64_t)1 << 30;

/* -- memory --------------------------------------------------------------------------------------------------------- */

/* Blocks of at least this size use huge pages, and are kept when they are freed: the kernel pins the pages of each message
 * one by one, and clears new ones. */
static const size_t LARGE = MPIDATA_HUGE_PAGE / 2;

/* Free blocks are kept up to this total, but always two of any size. */
static const size_t KEEP_BYTES = (size_t)64 << 20;
enum { KEEP_ANYWAY = 2 };

/* The head of a free block. */
typedef struct block {
    size_t capacity;
    struct block *next;
} block;

static struct {
    mpidata_lock lock;
    block *first; /* the newest first */
} pool = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER}};

static size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

static char *new_block(size_t bytes, size_t *capacity) {
    size_t boundary = bytes < LARGE ? MPIDATA_BOUNDARY : MPIDATA_HUGE_PAGE;
    *capacity = round_up(bytes ? bytes : 1, boundary);
    char *memory = aligned_alloc(boundary, *capacity);
#ifdef MADV_HUGEPAGE
    if (memory && bytes >= LARGE) (void)madvise(memory, *capacity, MADV_HUGEPAGE); /* only a hint */
#endif
    return memory;
}

static char *take_block(size_t bytes, size_t *capacity) {
    if (bytes < LARGE) return new_block(bytes, capacity);
    mpidata_lock_take(&pool.lock);
    block **at = &pool.first, *found;
    while ((found = *at) && (found->capacity < bytes || found->capacity / 2 > bytes)) at = &found->next;
    if (found) *at = found->next;
    mpidata_lock_give(&pool.lock);
    if (!found) return new_block(bytes, capacity);
    *capacity = found->capacity;
    return (char *)found;
}

static void give_back_block(char *memory, size_t capacity) {
    if (capacity < LARGE) {
        free(memory);
        return;
    }
    block *back = (block *)memory, *rest = NULL;
    size_t kept = 0;
    int n = 0;
    mpidata_lock_take(&pool.lock);
    *back = (block){capacity, pool.first};
    pool.first = back;
    for (block **at = &pool.first; *at && !rest; at = &(*at)->next) {
        kept += (*at)->capacity;
        if (++n <= KEEP_ANYWAY || kept <= KEEP_BYTES) continue;
        rest = *at;
        *at = NULL;
        break;
    }
    mpidata_lock_give(&pool.lock);
    for (block *next; rest; rest = next) {
        next = rest->next;
        free(rest);
    }
}

/* -- parcels -------------------------------------------------------------------------------------------------------- */

/* -- layout of messages --------------------------------------------------------------------------------------------- */

static size_t head_bytes(int64_t n_parts) {
    return mpidata_padded(sizeof(mpidata_parcel_head) + (size_t)n_parts * sizeof(int64_t));
}

static size_t bytes_in_all(const int64_t *sizes, int64_t n_parts) {
    size_t bytes = 0;
    for (int64_t i = 0; i < n_parts; i++) bytes += (size_t)sizes[i];
    return bytes;
}

size_t mpidata_parcel_first_bytes(const int64_t *sizes, int64_t n_parts) {
    mpidata_walk walk = {.in_all = bytes_in_all(sizes, n_parts)};
    for (int64_t i = 0; i < n_parts; i++) (void)mpidata_walk_on(&walk, (size_t)sizes[i]);
    return head_bytes(n_parts) + walk.end;
}

void mpidata_parcel_write_first(const mpidata_parcel_head *head, const int64_t *sizes, const void *const *parts, char *message) {
    size_t n_bytes = (size_t)head->n_parts * sizeof *sizes, begin = head_bytes(head->n_parts);
    mpidata_walk walk = {.in_all = bytes_in_all(sizes, head->n_parts)};
    memset(message, 0, mpidata_parcel_first_bytes(sizes, head->n_parts));
    memcpy(message, head, sizeof *head);
    memcpy(message + sizeof *head, sizes, n_bytes);
    for (int64_t i = 0; i < head->n_parts; i++)
        if (mpidata_walk_on(&walk, (size_t)sizes[i]) && sizes[i]) memcpy(message + begin + walk.place, parts[i], (size_t)sizes[i]);
}

/* Advance to the next part that does not travel along. An empty part needs no message. */
static void skip_along(mpidata_parcel_rest *rest) {
    while (rest->part < rest->n_parts &&
           (!rest->sizes[rest->part] || mpidata_walk_on(&rest->walk, (size_t)rest->sizes[rest->part])))
        rest->part++;
}

mpidata_parcel_rest mpidata_parcel_begin_rest(const int64_t *sizes, int64_t n_parts) {
    mpidata_parcel_rest rest = {.sizes = sizes, .n_parts = n_parts, .walk = {.in_all = bytes_in_all(sizes, n_parts)}};
    skip_along(&rest);
    return rest;
}

int mpidata_parcel_has_rest(const mpidata_parcel_rest *rest) { return rest->part < rest->n_parts; }

void mpidata_parcel_next(mpidata_parcel_rest *rest, int64_t *part, int64_t *at, int *bytes) {
    int64_t left = rest->sizes[rest->part] - rest->at;
    *part = rest->part;
    *at = rest->at;
    *bytes = (int)(left < mpidata_chunk_bytes ? left : mpidata_chunk_bytes);
    rest->at += *bytes;
    if (*bytes < left) return;
    rest->part++;
    rest->at = 0;
    skip_along(rest);
}

/* -- parcels that come ---------------------------------------------------------------------------------------------- */

static int check(const mpidata_parcel_head *head, size_t bytes) {
    if (bytes < sizeof *head || head->magic != MPIDATA_PARCEL_MAGIC)
        return mpidata_error(MPIDATA_ERR_WIRE, "A message of %zu bytes is not the header of a parcel", bytes);
    if (head->n_parts < 1 || head->n_parts > MPIDATA_PARTS_MAX || bytes < head_bytes(head->n_parts))
        return mpidata_error(MPIDATA_ERR_WIRE, "A parcel with %lld parts has a header of %zu bytes",
                             (long long)head->n_parts, bytes);
    const int64_t *sizes = (const int64_t *)(head + 1);
    int64_t in_all = 0;
    for (int64_t i = 0; i < head->n_parts; i++) {
        if (sizes[i] < 0 || sizes[i] > INT64_MAX / 4 - in_all)
            return mpidata_error(MPIDATA_ERR_WIRE, "Part %lld of a parcel has %lld bytes", (long long)i, (long long)sizes[i]);
        in_all += sizes[i];
    }
    size_t first = mpidata_parcel_first_bytes(sizes, head->n_parts);
    if (bytes != first)
        return mpidata_error(MPIDATA_ERR_WIRE, "A parcel begins with a message of %zu bytes instead of %zu", bytes, first);
    return MPIDATA_SUCCESS;
}

static mpidata_parcel *new_parcel(const mpidata_parcel_head *head, const int64_t *sizes, int peer, int placed) {
    size_t n = (size_t)head->n_parts, list = n * sizeof *sizes;
    mpidata_parcel *parcel = malloc(sizeof *parcel + 2 * list + (placed ? n * sizeof(char *) : 0));
    if (!parcel) return NULL;
    *parcel = (mpidata_parcel){.head = *head, .peer = peer, .sizes = (int64_t *)(parcel + 1)};
    parcel->offsets = parcel->sizes + n;
    memcpy(parcel->sizes, sizes, list);
    if (placed) parcel->places = memset(parcel->offsets + n, 0, n * sizeof(char *));
    return parcel;
}

static int is_placed(const mpidata_parcel *parcel, int64_t part) { return parcel->places && parcel->places[part]; }

char *mpidata_parcel_part(const mpidata_parcel *parcel, int64_t part) {
    return is_placed(parcel, part) ? parcel->places[part] : parcel->memory + parcel->offsets[part];
}

/* Allocate memory for the parts that have no other place. */
static int give_memory(mpidata_parcel *parcel) {
    size_t bytes = 0;
    for (int64_t i = 0; i < parcel->head.n_parts; i++) {
        parcel->offsets[i] = (int64_t)bytes;
        if (!is_placed(parcel, i)) bytes += mpidata_padded((size_t)parcel->sizes[i]);
    }
    parcel->bytes = bytes;
    parcel->memory = take_block(bytes, &parcel->capacity);
    return parcel->memory ? MPIDATA_SUCCESS
                          : mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory: no room for a parcel of %zu bytes", bytes);
}

/* Copy parts that travelled along to their places. */
static void place_first(mpidata_parcel *parcel, const char *payload) {
    int64_t n = parcel->head.n_parts;
    mpidata_walk walk = {.in_all = bytes_in_all(parcel->sizes, n)};
    for (int64_t i = 0; i < n; i++) {
        size_t size = (size_t)parcel->sizes[i];
        if (mpidata_walk_on(&walk, size) && size) memcpy(mpidata_parcel_part(parcel, i), payload + walk.place, size);
    }
    parcel->rest = mpidata_parcel_begin_rest(parcel->sizes, n);
}

int mpidata_parcel_open(const char *message, size_t bytes, int peer, const mpidata_placing *placing, mpidata_parcel **parcel) {
    const mpidata_parcel_head *head = (const mpidata_parcel_head *)message;
    MPIDATA_TRY(check(head, bytes));
    const int64_t *sizes = (const int64_t *)(head + 1);
    mpidata_parcel *made = new_parcel(head, sizes, peer, placing != NULL);
    if (!made) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory: no room for a parcel");
    int status = placing ? placing->choose(placing->context, made) : MPIDATA_SUCCESS;
    if (!status) status = give_memory(made);
    if (status) {
        free(made);
        return status;
    }
    place_first(made, message + head_bytes(head->n_parts));
    *parcel = made;
    return MPIDATA_SUCCESS;
}

void mpidata_parcel_free(mpidata_parcel *parcel) {
    if (!parcel) return;
    give_back_block(parcel->memory, parcel->capacity);
    free(parcel);
}

void mpidata_parcels_append(mpidata_parcel_list *list, mpidata_parcel *parcel) {
    MPIDATA_LIST_APPEND(list, parcel);
}

mpidata_parcel *mpidata_parcels_pop(mpidata_parcel_list *list) {
    mpidata_parcel *parcel;
    MPIDATA_LIST_POP(list, parcel);
    return parcel;
}

void mpidata_parcels_free(mpidata_parcel_list *list) {
    for (mpidata_parcel *parcel; (parcel = mpidata_parcels_pop(list));) mpidata_parcel_free(parcel);
}
