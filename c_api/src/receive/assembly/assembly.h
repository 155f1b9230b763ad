/* Samples that are being assembled from the pieces of a group's ranks. Not thread-safe: the receive thread's own. */
#ifndef MPIDATA_ASSEMBLY_H
#define MPIDATA_ASSEMBLY_H

#include "buffer/slots.h"
#include "maps/kept.h"
#include "receive/assembly/layout.h"
#include "wire/wire.h"

/* A part that was put by a map, until the sample is whole. */
typedef struct {
    int part, field, rank; /* the rank in the group */
    mpidata_kept_map *map;
} mpidata_mapped_part;

typedef struct mpidata_assembly {
    int group;
    int64_t by_try; /* two tries of a simulation do not mix, not even those of one group */
    int64_t simulation, step, slot; /* slot -1: of constants */
    mpidata_slot *memory; /* that of the slot, for who has made the assembly; NULL: of constants */
    mpidata_parts *parts; /* that of the slot, or of the constants */
    mpidata_try_constants *constants; /* which these are, or which the sample has; NULL: there are none */
    int lost; /* its group is lost: to be freed when its last block under way has ended */
    double time;
    int first_rank; /* of those that sent a piece: its time counts */
    int validation;
    int headers;      /* where all ranks send: ranks that have sent theirs */
    int *heard;       /* by rank of the group, how many blocks it has announced; -1: no header has come from it */
    int64_t layout;   /* version of the layout that all its blocks have been found in so far; -1: some were not */
    int outstanding; /* blocks announced, not yet in place */
    int under_way;   /* of them, those that are being received into the slot */
    int64_t *missing; /* per field, elements not yet announced */
    mpidata_block *blocks;
    int *block_ranks; /* in the group */
    int n_blocks;
    int64_t allocated;
    mpidata_mapped_part *mapped;
    int n_mapped;
    int64_t mapped_room;
    struct mpidata_assembly *next; /* in its hash chain, or of those that are free */
} mpidata_assembly;

enum { MPIDATA_ASSEMBLY_CHAINS = 1024 };

typedef struct {
    const mpidata_plan *plan;
    mpidata_assembly *chains[MPIDATA_ASSEMBLY_CHAINS];
    int64_t count, lost, validation; /* all; those of lost groups; of validation samples */
    mpidata_layout layouts[2]; /* of steps, and of constants */
    int64_t compared;          /* blocks with one another, so far */
    mpidata_assembly *free; /* with their arrays, to be used again: one is needed for each sample */
} mpidata_assemblies;

void mpidata_assemblies_open(mpidata_assemblies *assemblies, const mpidata_plan *plan);
void mpidata_assemblies_close(mpidata_assemblies *assemblies);

mpidata_assembly *mpidata_assembly_find(const mpidata_assemblies *assemblies, int group, int64_t by_try,
                                        int64_t simulation, int64_t step);

/* New, into `slot`; NULL where memory is short. */
mpidata_assembly *mpidata_assembly_new(mpidata_assemblies *assemblies, int group, int64_t by_try, int64_t simulation,
                                       int64_t step, int64_t slot, int validation);

/* Write, for a sentence, of which group's sample it is. */
void mpidata_assembly_who(const mpidata_assembly *assembly, char *text, size_t size);

/* Where a field that does not vary is. */
char *mpidata_assembly_field(const mpidata_slots *slots, const mpidata_assembly *assembly, int field);

/* A rank of the group has sent its header; refuses a second one. */
int mpidata_assembly_hear(const mpidata_assemblies *assemblies, mpidata_assembly *assembly, int rank_in_group);

/* Announce a block of a field that does not vary, not in place yet (outstanding + 1). */
int mpidata_assembly_announce(const mpidata_assemblies *assemblies, mpidata_assembly *assembly,
                              const mpidata_block *block, int rank_in_group);

/* A piece has been announced. If that was the last one, or too much has been, look for blocks that overlap, unless all are
 * where they were in an earlier step: refuses two that do, with their ranks. */
int mpidata_assembly_check(mpidata_assemblies *assemblies, mpidata_assembly *assembly);

/* Is every element of every field in place, but for optional ones that were not put, and has each rank sent its header? Are
 * the constants whole that the sample has? */
int mpidata_assembly_whole(const mpidata_assemblies *assemblies, const mpidata_assembly *assembly);

/* It needs its maps no more. */
void mpidata_assembly_release_maps(mpidata_assembly *assembly);

void mpidata_assembly_free(mpidata_assemblies *assemblies, mpidata_assembly *assembly);

/* Does the block lie in one contiguous piece of the field? Then *offset is that of its first element. */
int mpidata_block_contiguous(const mpidata_field *field, const mpidata_block *block, int64_t *offset);

/* Copy a block from contiguous memory to its place in the field. */
void mpidata_block_copy(const mpidata_field *field, const mpidata_block *block, char *target, const char *values);

#endif
