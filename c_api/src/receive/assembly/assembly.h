/* Samples that are being assembled from the pieces of a group's ranks. Only for the receive thread. */
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
    mpidata_slot *memory; /* the slot; NULL: of constants */
    mpidata_parts *parts; /* those of the slot or of the constants */
    mpidata_try_constants *constants; /* being assembled, or those of the sample; NULL: none */
    int lost; /* its group is lost: to be freed when its last block in flight has ended */
    double time;
    int first_rank; /* the lowest that sent a piece: its time counts */
    int validation;
    int headers;      /* if all ranks send: ranks whose header has come */
    int *heard;       /* by rank of the group, number of announced blocks; -1: its header has not come */
    int64_t layout;   /* version of the layout that contains all its blocks so far; -1: some are not in it */
    int outstanding; /* blocks announced, not yet in place */
    int under_way;   /* of them, those being received into the slot */
    int64_t *missing; /* per field, elements not yet announced */
    mpidata_block *blocks;
    int *block_ranks; /* in the group */
    int n_blocks;
    int64_t allocated;
    mpidata_mapped_part *mapped;
    int n_mapped;
    int64_t mapped_room;
    struct mpidata_assembly *next; /* in its hash chain, or in the list of free ones */
} mpidata_assembly;

enum { MPIDATA_ASSEMBLY_CHAINS = 1024 };

typedef struct {
    const mpidata_plan *plan;
    mpidata_assembly *chains[MPIDATA_ASSEMBLY_CHAINS];
    int64_t count, lost, validation; /* all; those of lost groups; of validation samples */
    mpidata_layout layouts[2]; /* of steps, and of constants */
    int64_t compared;          /* pairs of blocks compared so far */
    mpidata_assembly *free; /* kept with their arrays for reuse, because each sample needs one */
} mpidata_assemblies;

void mpidata_assemblies_open(mpidata_assemblies *assemblies, const mpidata_plan *plan);
void mpidata_assemblies_close(mpidata_assemblies *assemblies);

mpidata_assembly *mpidata_assembly_find(const mpidata_assemblies *assemblies, int group, int64_t by_try,
                                        int64_t simulation, int64_t step);

/* New, into `slot`; NULL if memory is exhausted. */
mpidata_assembly *mpidata_assembly_new(mpidata_assemblies *assemblies, int group, int64_t by_try, int64_t simulation,
                                       int64_t step, int64_t slot, int validation);

/* Write the group and sample, for a sentence. */
void mpidata_assembly_who(const mpidata_assembly *assembly, char *text, size_t size);

/* Where a field that does not vary is. */
char *mpidata_assembly_field(const mpidata_slots *slots, const mpidata_assembly *assembly, int field);

/* A rank of the group has sent its header; refuses a second one. */
int mpidata_assembly_hear(const mpidata_assemblies *assemblies, mpidata_assembly *assembly, int rank_in_group);

/* Announce a block of a field that does not vary, not in place yet (outstanding + 1). */
int mpidata_assembly_announce(const mpidata_assemblies *assemblies, mpidata_assembly *assembly,
                              const mpidata_block *block, int rank_in_group);

/* A piece has been announced. If that was the last one, or too much was announced, search for overlapping blocks, unless all
 * are where they were in an earlier step: refuses two that overlap, with their ranks. */
int mpidata_assembly_check(mpidata_assemblies *assemblies, mpidata_assembly *assembly);

/* Whether every element of every field is in place, except optional fields that were not put, each rank has sent its header,
 * and the sample's constants are whole. */
int mpidata_assembly_whole(const mpidata_assemblies *assemblies, const mpidata_assembly *assembly);

/* It no longer needs its maps. */
void mpidata_assembly_release_maps(mpidata_assembly *assembly);

void mpidata_assembly_free(mpidata_assemblies *assemblies, mpidata_assembly *assembly);

/* Whether the block is one contiguous piece of the field; *offset is then that of its first element. */
int mpidata_block_contiguous(const mpidata_field *field, const mpidata_block *block, int64_t *offset);

/* Copy a block from contiguous memory to its place in the field. */
void mpidata_block_copy(const mpidata_field *field, const mpidata_block *block, char *target, const char *values);

#endif
