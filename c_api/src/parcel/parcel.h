/* Parcels: what passes between trainers and loaders, requests and the answers to them. A parcel is a header
 * (mpidata_parcel_head, then the size of each of its parts, int64) and the parts. Small parts travel along behind the
 * header, as the blocks of a piece do (wire.h); each other one follows, in order, in messages of mpidata_chunk_bytes at most.
 * One that has come lies in one block of memory, each part on a boundary of 64 bytes, but for parts that the receiver
 * wants elsewhere. */
#ifndef MPIDATA_PARCEL_H
#define MPIDATA_PARCEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "parcel/transfers.h"
#include "wire/wire.h"

#define MPIDATA_PARCEL_MAGIC 0x4C504450u
#define MPIDATA_PARTS_MAX (1 + (1 << 20))

/* Kind of a request: this trainer sends no more to this loader. Other kinds are Python's. */
#define MPIDATA_PARCEL_FAREWELL UINT32_MAX

/* Bytes of a message at most: MPI counts in int. Tests make it smaller, in all ranks. */
extern int64_t mpidata_chunk_bytes;

typedef struct {
    uint32_t magic;
    uint32_t dataset, kind, status;
    uint64_t number;
    int64_t n_parts; /* 1 at least */
} mpidata_parcel_head;

/* The messages that follow the first one of a parcel, each a part that does not travel along, or a piece of it. */
typedef struct {
    const int64_t *sizes;
    int64_t n_parts, part, at;
    mpidata_walk walk;
} mpidata_parcel_rest;

mpidata_parcel_rest mpidata_parcel_begin_rest(const int64_t *sizes, int64_t n_parts);
int mpidata_parcel_has_rest(const mpidata_parcel_rest *rest);

/* On to the next one, which there is: *bytes of the part *part, from *at on. */
void mpidata_parcel_next(mpidata_parcel_rest *rest, int64_t *part, int64_t *at, int *bytes);

/* One that comes, or has come. */
typedef struct mpidata_parcel {
    mpidata_parcel_head head;
    int peer; /* trainer or loader that sends it */
    char *memory;
    size_t bytes, capacity;
    int64_t *sizes, *offsets; /* of its parts */
    char **places;            /* where parts lie that are not in its memory, the others NULL; NULL: all are */
    mpidata_parcel_rest rest; /* to be matched */
    mpidata_pending pending;  /* receives into it */
    int dropped;              /* nobody wants it */
    struct mpidata_parcel *next;
} mpidata_parcel;

/* Make the first message of a parcel, with what travels along, in memory of mpidata_parcel_first_bytes. */
size_t mpidata_parcel_first_bytes(const int64_t *sizes, int64_t n_parts);
void mpidata_parcel_write_first(const mpidata_parcel_head *head, const int64_t *sizes, const void *const *parts, char *message);

/* Where a receiver wants parts: it sets the parcel's places of such, all NULL before, to memory of their sizes, which has
 * to stay until the parcel has been freed. Not MPIDATA_SUCCESS: the parcel is refused. */
typedef struct {
    int (*choose)(void *context, const mpidata_parcel *parcel);
    void *context;
} mpidata_placing;

/* Make a parcel out of its first message, of `bytes` bytes, 8-byte aligned; MPIDATA_ERR_WIRE, _MEMORY. placing NULL: all parts
 * go into its memory. */
int mpidata_parcel_open(const char *message, size_t bytes, int peer, const mpidata_placing *placing, mpidata_parcel **parcel);

char *mpidata_parcel_part(const mpidata_parcel *parcel, int64_t part);

/* Its memory is kept for another one. Any thread. */
void mpidata_parcel_free(mpidata_parcel *parcel);

/* Parcels in the order in which they came. */
typedef struct {
    mpidata_parcel *first, *last;
} mpidata_parcel_list;

void mpidata_parcels_append(mpidata_parcel_list *list, mpidata_parcel *parcel);
mpidata_parcel *mpidata_parcels_pop(mpidata_parcel_list *list); /* NULL: it is empty */
void mpidata_parcels_free(mpidata_parcel_list *list);

#endif
