#include "receive/assembly/assembly.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "containers/array.h"
#include "receive/assembly/overlap.h"

void mpidata_assemblies_open(mpidata_assemblies *assemblies, const mpidata_plan *plan) {
    memset(assemblies, 0, sizeof *assemblies);
    assemblies->plan = plan;
}

static void give_up(mpidata_assembly *assembly) {
    free(assembly->missing);
    free(assembly->heard);
    free(assembly->blocks);
    free(assembly->block_ranks);
    free(assembly->mapped);
    free(assembly);
}

void mpidata_assemblies_close(mpidata_assemblies *assemblies) {
    for (int i = 0; i < MPIDATA_ASSEMBLY_CHAINS; i++)
        while (assemblies->chains[i]) mpidata_assembly_free(assemblies, assemblies->chains[i]);
    for (mpidata_assembly *assembly = assemblies->free, *next; assembly; assembly = next) {
        next = assembly->next;
        give_up(assembly);
    }
    assemblies->free = NULL;
    for (int of_constants = 0; of_constants < 2; of_constants++) mpidata_layout_free(&assemblies->layouts[of_constants]);
}

static int chain_of(int64_t simulation, int64_t step) {
    uint64_t hash = (uint64_t)simulation * 0x9E3779B97F4A7C15u + (uint64_t)step * 0xC2B2AE3D27D4EB4Fu;
    return (int)(hash >> 54);
}

mpidata_assembly *mpidata_assembly_find(const mpidata_assemblies *assemblies, int group, int64_t by_try,
                                        int64_t simulation, int64_t step) {
    mpidata_assembly *assembly = assemblies->chains[chain_of(simulation, step)];
    while (assembly && (assembly->simulation != simulation || assembly->step != step || assembly->group != group ||
                        assembly->by_try != by_try))
        assembly = assembly->next;
    return assembly;
}

static mpidata_assembly *reuse(mpidata_assemblies *assemblies) {
    mpidata_assembly *assembly = assemblies->free;
    if (assembly) {
        assemblies->free = assembly->next;
        return assembly;
    }
    if (!(assembly = calloc(1, sizeof *assembly))) return NULL;
    assembly->missing = calloc((size_t)assemblies->plan->n_fields, sizeof *assembly->missing);
    assembly->heard = calloc((size_t)assemblies->plan->ranks_per_group, sizeof *assembly->heard);
    if (assembly->missing && assembly->heard) return assembly;
    give_up(assembly);
    return NULL;
}

mpidata_assembly *mpidata_assembly_new(mpidata_assemblies *assemblies, int group, int64_t by_try, int64_t simulation,
                                       int64_t step, int64_t slot, int validation) {
    const mpidata_plan *plan = assemblies->plan;
    mpidata_assembly *assembly = reuse(assemblies);
    if (!assembly) return NULL;
    for (int i = 0; i < plan->n_fields; i++) assembly->missing[i] = plan->fields[i].elements;
    memset(assembly->heard, -1, (size_t)plan->ranks_per_group * sizeof *assembly->heard);
    mpidata_assembly **chain = &assemblies->chains[chain_of(simulation, step)];
    *assembly = (mpidata_assembly){.group = group, .by_try = by_try, .simulation = simulation, .step = step, .slot = slot,
                                   .first_rank = INT_MAX, .validation = validation, .missing = assembly->missing, .heard = assembly->heard,
                                   .layout = assemblies->layouts[slot < 0].version,
                                   .blocks = assembly->blocks, .block_ranks = assembly->block_ranks,
                                   .allocated = assembly->allocated, .mapped = assembly->mapped,
                                   .mapped_room = assembly->mapped_room, .next = *chain};
    *chain = assembly;
    assemblies->count++;
    assemblies->validation += validation;
    return assembly;
}

void mpidata_assembly_release_maps(mpidata_assembly *assembly) {
    while (assembly->n_mapped) mpidata_kept_let_go(assembly->mapped[--assembly->n_mapped].map);
}

void mpidata_assembly_free(mpidata_assemblies *assemblies, mpidata_assembly *assembly) {
    mpidata_assembly_release_maps(assembly);
    mpidata_assembly **link = &assemblies->chains[chain_of(assembly->simulation, assembly->step)];
    while (*link != assembly) link = &(*link)->next;
    *link = assembly->next;
    assemblies->count--;
    assemblies->lost -= assembly->lost;
    assemblies->validation -= assembly->validation;
    assembly->next = assemblies->free;
    assemblies->free = assembly;
}

static int reserve(mpidata_assembly *assembly) {
    if (assembly->n_blocks < assembly->allocated) return MPIDATA_SUCCESS;
    int64_t allocated = mpidata_array_room(assembly->allocated, assembly->n_blocks + 1, 8);
    if (!mpidata_array_resize(&assembly->blocks, allocated, sizeof *assembly->blocks) ||
        !mpidata_array_resize(&assembly->block_ranks, allocated, sizeof *assembly->block_ranks))
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory while assembling a sample");
    assembly->allocated = allocated;
    return MPIDATA_SUCCESS;
}

void mpidata_assembly_who(const mpidata_assembly *assembly, char *text, size_t size) {
    char when[40] = "before its first step";
    if (assembly->step >= 0) (void)snprintf(when, sizeof when, "step %lld", (long long)assembly->step);
    (void)snprintf(text, size, "Solver group %d, simulation %lld, %s", assembly->group, (long long)assembly->simulation, when);
}

char *mpidata_assembly_field(const mpidata_slots *slots, const mpidata_assembly *assembly, int field) {
    if (assembly->slot < 0) return assembly->constants->values[field];
    return mpidata_slot_field(slots, assembly->memory, field);
}

int mpidata_assembly_hear(const mpidata_assemblies *assemblies, mpidata_assembly *assembly, int rank_in_group) {
    int *heard = &assembly->heard[rank_in_group];
    if (*heard < 0)
        *heard = 0;
    else if (mpidata_plan_all_send(assemblies->plan))
        return mpidata_error(MPIDATA_ERR_WIRE, "A rank has sent a second header for one step");
    assembly->headers++;
    return MPIDATA_SUCCESS;
}

int mpidata_assembly_announce(const mpidata_assemblies *assemblies, mpidata_assembly *assembly,
                              const mpidata_block *block, int rank_in_group) {
    const mpidata_layout *layout = &assemblies->layouts[assembly->slot < 0];
    MPIDATA_TRY(reserve(assembly));
    if (assembly->layout != layout->version || !mpidata_layout_has(layout, rank_in_group, assembly->heard[rank_in_group]++, block))
        assembly->layout = -1;
    assembly->blocks[assembly->n_blocks] = *block;
    assembly->block_ranks[assembly->n_blocks++] = rank_in_group;
    assembly->missing[block->field] -= mpidata_block_elements(block);
    assembly->outstanding++;
    return MPIDATA_SUCCESS;
}

/* A field with more announced elements than it has; -1: there is none. */
static int overfull(const mpidata_plan *plan, const mpidata_assembly *assembly) {
    int field = plan->n_fields - 1;
    while (field >= 0 && assembly->missing[field] >= 0) field--;
    return field;
}

/* Whether all ranks have announced all elements. */
static int announced(const mpidata_plan *plan, const mpidata_assembly *assembly) {
    if (mpidata_plan_all_send(plan) && assembly->headers < plan->ranks_per_group) return 0;
    for (int i = 0; i < plan->n_fields; i++)
        if (assembly->missing[i] && (plan->fields[i].given < 0 || assembly->missing[i] < plan->fields[i].row)) return 0;
    return 1;
}

int mpidata_assembly_check(mpidata_assemblies *assemblies, mpidata_assembly *assembly) {
    const mpidata_plan *plan = assemblies->plan;
    if (assembly->layout >= 0) return MPIDATA_SUCCESS;
    const int full = overfull(plan, assembly);
    mpidata_overlap overlap;
    if (full < 0 && !announced(plan, assembly)) return MPIDATA_SUCCESS;
    if (mpidata_overlap_find(assembly->blocks, assembly->n_blocks, &overlap))
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory while assembling a sample");
    assemblies->compared += overlap.compared;
    if (overlap.one >= 0)
        return mpidata_error(MPIDATA_ERR_BLOCK, "The blocks of field '%s' that ranks %d and %d of the group put overlap",
                             plan->fields[assembly->blocks[overlap.one].field].name, assembly->block_ranks[overlap.one],
                             assembly->block_ranks[overlap.other]);
    if (full >= 0)
        return mpidata_error(MPIDATA_ERR_BLOCK, "The ranks of the group have put more than all of field '%s'", plan->fields[full].name);
    mpidata_layout_set(&assemblies->layouts[assembly->slot < 0], plan->ranks_per_group, assembly->blocks, assembly->block_ranks,
                       assembly->n_blocks);
    return MPIDATA_SUCCESS;
}

int mpidata_assembly_whole(const mpidata_assemblies *assemblies, const mpidata_assembly *assembly) {
    if (assembly->outstanding || !announced(assemblies->plan, assembly)) return 0;
    return !assembly->constants || assembly->slot < 0 || assembly->constants->whole;
}

int mpidata_block_contiguous(const mpidata_field *field, const mpidata_block *block, int64_t *offset) {
    int64_t at = 0;
    int contiguous = 1, inner_full = 1; /* all dimensions inside the current one are covered in full */
    for (int d = 0; d < field->ndim; d++) at = at * field->shape[d] + block->start[d];
    for (int d = field->ndim - 1; d >= 0; d--) {
        if (!inner_full && block->shape[d] != 1) contiguous = 0;
        if (block->shape[d] != field->shape[d]) inner_full = 0;
    }
    *offset = at;
    return contiguous;
}

/* Copy row by row, with a counter of the outer dimensions. */
static void copy_rows(const mpidata_field *field, const mpidata_block *block, char *target, const char *values) {
    int last = field->ndim - 1;
    int64_t at[MPIDATA_MAX_NDIM] = {0}, rows = 1;
    size_t bytes = (size_t)block->shape[last] * field->element_size;
    for (int d = 0; d < last; d++) rows *= block->shape[d];
    for (int64_t row = 0; row < rows; row++, values += bytes) {
        int64_t offset = 0;
        for (int d = 0; d <= last; d++) offset = offset * field->shape[d] + block->start[d] + at[d];
        memcpy(target + (size_t)offset * field->element_size, values, bytes);
        for (int d = last - 1; d >= 0 && ++at[d] == block->shape[d]; d--) at[d] = 0;
    }
}

void mpidata_block_copy(const mpidata_field *field, const mpidata_block *block, char *target, const char *values) {
    int64_t offset;
    if (mpidata_block_contiguous(field, block, &offset))
        memcpy(target + (size_t)offset * field->element_size, values,
               (size_t)mpidata_block_elements(block) * field->element_size);
    else
        copy_rows(field, block, target, values);
}
