#include "receive/incoming/mapped.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "containers/array.h"
#include "maps/cover.h"

int mpidata_take_map(mpidata_source *source) {
    const mpidata_map_head *head;
    const int64_t *indices;
    if (source->lost) return MPIDATA_SUCCESS;
    MPIDATA_TRY(mpidata_map_check(source->message, source->bytes, &head, &indices));
    return mpidata_kept_take(&source->maps, head, indices);
}

static int reserve(mpidata_assembly *assembly) {
    return mpidata_array_reserve(&assembly->mapped, &assembly->mapped_room, assembly->n_mapped + 1, 4, sizeof *assembly->mapped)
               ? MPIDATA_SUCCESS
               : mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory while assembling a sample");
}

int mpidata_announce_mapped(const mpidata_incoming *in, const mpidata_source *source, mpidata_assembly *assembly,
                            const mpidata_block *block, int part) {
    const mpidata_field *field = &in->trainer->job.plan.fields[block->field];
    mpidata_kept_map *map = mpidata_kept_find(&source->maps, block->map);
    if (!map || map->n != block->shape[mpidata_row_dimension(field)] || (field->varying < 0 && map->greatest >= field->shape[0]))
        return mpidata_error(MPIDATA_ERR_WIRE, "A block of field '%s' does not fit map %lld", field->name, (long long)block->map);
    MPIDATA_TRY(reserve(assembly));
    assembly->mapped[assembly->n_mapped++] = (mpidata_mapped_part){part, block->field, source->rank_in_group, map};
    map->uses++;
    if (field->varying >= 0) return MPIDATA_SUCCESS;
    assembly->missing[block->field] -= mpidata_block_elements(block);
    if (assembly->missing[block->field] >= 0) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_BLOCK, "The ranks have put more rows of field '%s' than its %lld", field->name,
                         (long long)field->shape[0]);
}

void mpidata_merge_row_moments(const mpidata_source *source, const mpidata_block *block, mpidata_moments *all,
                               const mpidata_moments *moments) {
    const mpidata_kept_map *map = mpidata_kept_find(&source->maps, block->map);
    for (int64_t i = 0; map && i < map->n; i++) mpidata_moments_merge(all + map->indices[i], moments + i, 1);
}

/* -- when a sample is whole ----------------------------------------------------------------------------------------- */

static const mpidata_part *part_of(const mpidata_assembly *assembly, int i) {
    return &assembly->parts->list[assembly->mapped[i].part];
}

static int compare(const void *one, const void *other) {
    const mpidata_mapped_part *a = one, *b = other;
    if (a->field != b->field) return a->field < b->field ? -1 : 1;
    if (a->rank != b->rank) return a->rank < b->rank ? -1 : 1;
    return a->part < b->part ? -1 : a->part > b->part; /* the order of the rank's calls */
}

/* Whether some of its parts were put without a map. */
static int has_others(const mpidata_plan *plan, const mpidata_assembly *assembly, int field) {
    const mpidata_parts *parts = assembly->parts;
    for (int i = 0; i < parts->n; i++)
        if (parts->list[i].block.field == field && !parts->list[i].block.map && mpidata_block_bytes(plan, &parts->list[i].block)) return 1;
    return 0;
}

/* Rows of the longest of the fields, and of the constants, that share a length. */
static int64_t rows_of_length(const mpidata_plan *plan, const mpidata_parts *parts, int length) {
    int64_t most = parts->constants ? parts->constants->numbers[length] : 0;
    for (int f = 0; f < plan->n_fields; f++) {
        const mpidata_field *field = &plan->fields[f];
        int64_t rows = 0;
        if (field->varying < 0 || field->length != length) continue;
        for (const mpidata_part *part = parts->list, *end = part + parts->n; part < end; part++)
            if (part->block.field == f && part->block.start[MPIDATA_LOCAL] != MPIDATA_JOINED_ROWS)
                rows += part->block.shape[field->varying];
        if (rows > most) most = rows;
    }
    return most;
}

/* Check the maps of one field: n from the first on. */
static int check(const mpidata_incoming *in, const mpidata_assembly *assembly, int first, int n, int64_t rows) {
    const mpidata_plan *plan = &in->trainer->job.plan;
    const int number = part_of(assembly, first)->block.field;
    const mpidata_field *field = &plan->fields[number];
    if (field->varying < 0 ? rows != field->shape[0] : has_others(plan, assembly, number))
        return mpidata_error(MPIDATA_ERR_BLOCK, "Field '%s' was put by maps and without one in a step", field->name);
    if (field->varying >= 0 && rows > INT_MAX / field->row)
        return mpidata_error(MPIDATA_ERR_SHAPE, "The parts of field '%s' have more than %d elements", field->name, INT_MAX);
    mpidata_kept_map **maps = NULL;
    int *ranks = NULL, status = MPIDATA_ERR_MEMORY;
    if (mpidata_array_resize(&maps, n, sizeof(mpidata_kept_map *)) && mpidata_array_resize(&ranks, n, sizeof *ranks)) {
        for (int i = 0; i < n; i++) {
            maps[i] = assembly->mapped[first + i].map;
            ranks[i] = part_of(assembly, first + i)->rank;
        }
        const int64_t all = field->varying < 0 ? rows : rows_of_length(plan, assembly->parts, field->length);
        status = mpidata_maps_cover(maps, ranks, n, all, field->name);
    } else {
        (void)mpidata_error(status, "Out of memory for the maps of field '%s'", field->name);
    }
    free(maps);
    free(ranks);
    return status;
}

/* For a field that varies, replace the parts that have come by one for all rows. */
static char *joined_part(const mpidata_incoming *in, const mpidata_assembly *assembly, int first, int n, int64_t rows) {
    const mpidata_plan *plan = &in->trainer->job.plan;
    mpidata_block block = part_of(assembly, first)->block;
    block.map = 0;
    block.shape[plan->fields[block.field].varying] = rows;
    for (int i = 1; i < n; i++) {
        const int64_t *start = part_of(assembly, first + i)->block.start;
        if (start[MPIDATA_LEAST] < block.start[MPIDATA_LEAST]) block.start[MPIDATA_LEAST] = start[MPIDATA_LEAST];
        if (start[MPIDATA_GREATEST] > block.start[MPIDATA_GREATEST]) block.start[MPIDATA_GREATEST] = start[MPIDATA_GREATEST];
    }
    block.start[MPIDATA_LOCAL] = MPIDATA_JOINED_ROWS;
    mpidata_parts *parts = assembly->parts;
    mpidata_lock_take(&in->trainer->lock);
    const int part = mpidata_parts_add(parts, &in->trainer->slots.heap, plan, &block, part_of(assembly, first)->rank);
    mpidata_lock_give(&in->trainer->lock);
    return part < 0 ? NULL : parts->list[part].values;
}

static int place(const mpidata_incoming *in, const mpidata_assembly *assembly, int first, int n) {
    const int number = part_of(assembly, first)->block.field;
    const mpidata_field *field = &in->trainer->job.plan.fields[number];
    int64_t rows = 0, inner = 1, outer = 1;
    for (int i = 0; i < n; i++) rows += assembly->mapped[first + i].map->n;
    MPIDATA_TRY(check(in, assembly, first, n, rows));
    char *target = field->varying < 0 ? mpidata_assembly_field(&in->trainer->slots, assembly, number) : joined_part(in, assembly, first, n, rows);
    if (!target) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the rows of field '%s'", field->name);
    for (int d = 0; d < field->ndim; d++) *(d < mpidata_row_dimension(field) ? &outer : &inner) *= d == mpidata_row_dimension(field) ? 1 : field->shape[d];
    for (int i = 0; i < n; i++)
        mpidata_scatter_rows(assembly->mapped[first + i].map, target, rows, part_of(assembly, first + i)->values, outer,
                             (size_t)inner * field->element_size);
    return MPIDATA_SUCCESS;
}

static int place_all(const mpidata_incoming *in, const mpidata_assembly *assembly) {
    for (int first = 0, n; first < assembly->n_mapped; first += n) {
        const int field = part_of(assembly, first)->block.field;
        for (n = 1; first + n < assembly->n_mapped && part_of(assembly, first + n)->block.field == field;) n++;
        MPIDATA_TRY(place(in, assembly, first, n));
    }
    return MPIDATA_SUCCESS;
}

int mpidata_place_mapped(const mpidata_incoming *in, mpidata_assembly *assembly) {
    char text[MPIDATA_TEXT_MAX], who[128];
    qsort(assembly->mapped, (size_t)assembly->n_mapped, sizeof *assembly->mapped, compare);
    const int status = place_all(in, assembly);
    if (!status) {
        mpidata_assembly_release_maps(assembly);
        mpidata_lock_take(&in->trainer->lock);
        mpidata_parts_drop_mapped(assembly->parts, &in->trainer->slots.heap, &in->trainer->job.plan);
        mpidata_lock_give(&in->trainer->lock);
        return MPIDATA_SUCCESS;
    }
    memcpy(text, mpidata_last_error(), sizeof text);
    mpidata_assembly_who(assembly, who, sizeof who);
    return mpidata_error(status == MPIDATA_ERR_MEMORY ? MPIDATA_ERR_ARGUMENT : MPIDATA_ERR_FIELD, "%.1500s. %s. %s", text, who,
                         status == MPIDATA_ERR_MEMORY ? "Lower buffer.capacity in the job file."
                                                      : "The maps of all ranks must have each row of a field exactly once.");
}
