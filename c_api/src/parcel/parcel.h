/* Parcels: requests of trainers to loaders, and the answers. A parcel is a header (mpidata_parcel_head, then the size of each
 * of its parts, int64) and the parts. Small parts travel along after the header, as the blocks of a piece do (wire.h); each
 * other one follows, in order, in messages of at most mpidata_chunk_bytes. A received parcel is in one block of memory, each
 * part aligned to 64 bytes, except parts that the receiver wants elsewhere. */
#ifndef MPIDATA_PARCEL_H
#define MPIDATA_PARCEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "parcel/transfers.h"
#include "wire/wire.h"

#define MPIDATA_PARCEL_MAGIC 0x4C504450u
#define MPIDATA_PARTS_MAX (1 + (1 << 20))

/* Kind of a request: this trainer sends no more to this loader. Python defines the other kinds. */
#define MPIDATA_PARCEL_FAREWELL UINT32_MAX

/* Most bytes of a message, because MPI counts in int. Tests lower it in all ranks. */
extern int64_t mpidata_chunk_bytes;

typedef struct {
    uint32_t magic;
    uint32_t dataset, kind, status;
    uint64_t number;
    int64_t n_parts; /* at least 1 */
} mpidata_parcel_head;

/* The messages after the first one of a parcel, each a part that does not travel along, or a piece of such a part. */
typedef struct {
    const int64_t *sizes;
    int64_t n_parts, part, at;
    mpidata_walk walk;
} mpidata_parcel_rest;

mpidata_parcel_rest mpidata_parcel_begin_rest(const int64_t *sizes, int64_t n_parts);
int mpidata_parcel_has_rest(const mpidata_parcel_rest *rest);

/* Advance to the next one, which must exist: *bytes of the part *part, from *at on. */
void mpidata_parcel_next(mpidata_parcel_rest *rest, int64_t *part, int64_t *at, int *bytes);

/* A parcel that is coming, or has come. */
typedef struct mpidata_parcel {
    mpidata_parcel_head head;
    int peer; /* trainer or loader that sends it */
    char *memory;
    size_t bytes, capacity;
    int64_t *sizes, *offsets; /* of its parts */
    char **places;            /* of parts that are outside its memory, the others NULL; NULL: none is outside */
    mpidata_parcel_rest rest; /* messages to be matched */
    mpidata_pending pending;  /* receives into it */
    int dropped;              /* nobody needs it */
    struct mpidata_parcel *next;
} mpidata_parcel;

/* Make the first message of a parcel, with the parts that travel along, in memory of mpidata_parcel_first_bytes. */
size_t mpidata_parcel_first_bytes(const int64_t *sizes, int64_t n_parts);
void mpidata_parcel_write_first(const mpidata_parcel_head *head, const int64_t *sizes, const void *const *parts, char *message);

/* Where a receiver wants parts: it sets their places in the parcel, all NULL before, to memory of their sizes, which must stay
 * until the parcel is freed. Not MPIDATA_SUCCESS: the parcel is refused. */
typedef struct {
    int (*choose)(void *context, const mpidata_parcel *parcel);
    void *context;
} mpidata_placing;

/* Make a parcel from its first message, of `bytes` bytes, 8-byte aligned; MPIDATA_ERR_WIRE, _MEMORY. placing NULL: all parts go
 * into its memory. */
int mpidata_parcel_open(const char *message, size_t bytes, int peer, const mpidata_placing *placing, mpidata_parcel **parcel);

char *mpidata_parcel_part(const mpidata_parcel *parcel, int64_t part);

/* Keeps its memory for another one. Any thread. */
void mpidata_parcel_free(mpidata_parcel *parcel);

/* Parcels in the order in which they came. */
typedef struct {
    mpidata_parcel *first, *last;
} mpidata_parcel_list;

void mpidata_parcels_append(mpidata_parcel_list *list, mpidata_parcel *parcel);
mpidata_parcel *mpidata_parcels_pop(mpidata_parcel_list *list); /* NULL: it is empty */
void mpidata_parcels_free(mpidata_parcel_list *list);

#endif
