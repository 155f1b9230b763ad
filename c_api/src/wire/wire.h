/* Pieces of samples, solver -> trainer. A piece is one rank's blocks of one sample, with a header (mpidata_piece, parameters,
 * one mpidata_block each, and moments of each if the job has statistics). Small blocks travel along, as payload after the
 * header; each other one follows in a separate message, in order. Pieces without separate messages may share a message. If
 * samples have numbers (lengths, optional fields), each rank of a group sends a piece in each step, even without a block: only
 * then is it known which parts a field has, and whether it was put. The constants of a simulation are a piece with a special
 * step number, which each rank sends to a trainer before its first other piece of that try. All ranks of a job run one build
 * on one architecture, so structures are sent unchanged. Received data is checked before use. */
#ifndef MPIDATA_WIRE_H
#define MPIDATA_WIRE_H

#include "wire/moments.h"
#include "wire/plan.h"

#define MPIDATA_PIECE_MAGIC 0x3344504Du
#define MPIDATA_MAP_MAGIC 0x3144504Du
#define MPIDATA_PIECE_SMALL 32768  /* most bytes of a piece's blocks with which all travel along */
#define MPIDATA_BLOCK_SMALL 16384  /* of a larger piece: bytes of a block that travels along ... */
#define MPIDATA_ALONG_MAX 131072   /* ... while the payload is no longer than this */
#define MPIDATA_BLOCK_ANYWHERE 1024 /* bytes from which on a block is aligned in the payload */
#define MPIDATA_BUNDLE_MAX 262144  /* bytes of pieces that share a message */
#define MPIDATA_BUNDLE_WORTH 65536 /* bytes of such pieces that do not wait for more */
#define MPIDATA_BLOCKS_MAX 4096    /* blocks of one piece */

typedef struct {
    uint32_t magic;
    int32_t n_blocks;
    int64_t simulation;
    int64_t step; /* or MPIDATA_STEP_OF_CONSTANTS */
    double time;
    int64_t payload_bytes; /* after the header, including padding */
    int64_t by_try;        /* number of the try of the simulation, from 1 */
} mpidata_piece;

typedef struct {
    int32_t field;
    int32_t ndim;
    int64_t start[MPIDATA_MAX_NDIM]; /* for a part of indices, which has no start: their least and greatest */
    int64_t shape[MPIDATA_MAX_NDIM];
    int64_t map; /* number of the map by which its rank has put its rows; 0: none */
} mpidata_block;

enum { MPIDATA_STEP_OF_CONSTANTS = -1 }; /* in place of a step */
/* Places in `start` of a part of indices. Local ones count from this rank's part of their length on, or from the index in it
 * that is one less; 0: they count along the whole length. */
enum { MPIDATA_LEAST = 0, MPIDATA_GREATEST = 1, MPIDATA_LOCAL = 2 };
enum { MPIDATA_JOINED_ROWS = -1 }; /* on a trainer, at MPIDATA_LOCAL: rows of all ranks in one part */

/* A map is a separate message before the piece that needs it, and the numbers of unneeded maps one after the last piece that
 * did. `count` int64 follow. */
typedef struct {
    uint32_t magic;
    int32_t forgets; /* whether these are numbers of maps */
    int64_t number;  /* of the map, from 1; 0 if it forgets */
    int64_t count;
} mpidata_map_head;

/* The dimension of the rows of a field that is put by maps. */
static inline int mpidata_row_dimension(const mpidata_field *field) { return field->varying < 0 ? 0 : field->varying; }

/* Whether the block waits among the parts of its sample until that is whole. */
static inline int mpidata_block_is_part(const mpidata_plan *plan, const mpidata_block *block) {
    return block->map || plan->fields[block->field].varying >= 0;
}

int64_t mpidata_block_elements(const mpidata_block *block);

/* A header, and each large block's payload after it, is aligned to 64 bytes, as memory for samples is: some processors copy at
 * a twentieth of their speed between addresses that differ by less than that, modulo 4096. */
enum { MPIDATA_BOUNDARY = 64 };

/* Rounded up to the boundary. */
static inline size_t mpidata_padded(size_t bytes) {
    return (bytes + MPIDATA_BOUNDARY - 1) / MPIDATA_BOUNDARY * MPIDATA_BOUNDARY;
}

/* Bytes of the values of one block, and of several. The fields have been checked. */
size_t mpidata_block_bytes(const mpidata_plan *plan, const mpidata_block *block);
size_t mpidata_blocks_bytes(const mpidata_plan *plan, const mpidata_block *blocks, int n);

/* A walk over the blocks of a piece, in order, that finds which travel along and their place in the payload. It starts as
 * {.in_all = bytes of all blocks}. */
typedef struct {
    size_t in_all;
    size_t place; /* where the last block that travels along begins */
    size_t end;   /* of the payload so far */
} mpidata_walk;

/* Advance to the next block, of this size; returns whether it travels along. A message costs more than the copies of a small
 * block. */
static inline int mpidata_walk_on(mpidata_walk *walk, size_t bytes) {
    size_t place = bytes < MPIDATA_BLOCK_ANYWHERE ? walk->end : mpidata_padded(walk->end);
    if (walk->in_all > MPIDATA_PIECE_SMALL && (bytes > MPIDATA_BLOCK_SMALL || place + bytes > MPIDATA_ALONG_MAX)) return 0;
    walk->place = place;
    walk->end = place + bytes;
    return 1;
}

/* Number of the moments of one block, and of several: 0 in a job without statistics, and for a block without elements. */
int64_t mpidata_block_moments(const mpidata_plan *plan, const mpidata_block *block);
int64_t mpidata_blocks_moments(const mpidata_plan *plan, const mpidata_block *blocks, int n);

/* Bytes of a header. */
size_t mpidata_piece_header_bytes(int n_parameters, int n_blocks, int64_t n_moments);

/* Bytes of a piece within a message: header and payload. */
size_t mpidata_piece_bytes(int n_parameters, int n_blocks, int64_t n_moments, int64_t payload_bytes);

/* The moments of a piece, block by block, follow its blocks. */
static inline const mpidata_moments *mpidata_piece_moments(const mpidata_piece *piece, const mpidata_block *blocks) {
    return (const mpidata_moments *)(const void *)(blocks + piece->n_blocks);
}

/* Check a block against its field; callers add the place to the sentence. */
int mpidata_block_check(const mpidata_plan *plan, const mpidata_block *block);

/* Whether this is the message of a map. */
static inline int mpidata_is_map(const void *message, size_t bytes) {
    return bytes >= sizeof(mpidata_map_head) && ((const mpidata_map_head *)message)->magic == MPIDATA_MAP_MAGIC;
}

/* Check the message of a map; *indices: the numbers after its head. */
int mpidata_map_check(const void *message, size_t bytes, const mpidata_map_head **head, const int64_t **indices);

/* Most bytes of a message with a map. */
size_t mpidata_map_bytes_max(const mpidata_plan *plan);

/* Check the first piece of a message that has `bytes` bytes left: the pointers are into `message`, which is 8-byte
 * aligned. The next piece begins mpidata_piece_bytes further on. */
int mpidata_piece_check(const mpidata_plan *plan, const void *message, size_t bytes, const mpidata_piece **piece,
                        const double **parameters, const mpidata_block **blocks, const char **payload);

#endif
