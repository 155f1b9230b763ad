#include "buffer/parts.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "containers/array.h"
#include "dtypes/indices.h"

int mpidata_parts_add(mpidata_parts *parts, mpidata_heap *heap, const mpidata_plan *plan, const mpidata_block *block, int rank) {
    if (!mpidata_array_reserve(&parts->list, &parts->allocated, parts->n + 1, 1, sizeof *parts->list)) return -1;
    const size_t bytes = mpidata_block_bytes(plan, block);
    mpidata_part *part = &parts->list[parts->n];
    *part = (mpidata_part){.block = *block, .rank = rank, .number = parts->n, .values = mpidata_heap_take(heap, bytes)};
    if (!part->values) return -1;
    parts->bytes += bytes;
    return parts->n++;
}

int mpidata_parts_fill(mpidata_parts *parts, mpidata_heap *heap, const mpidata_plan *plan, int field, int64_t extent, const void *values) {
    const mpidata_field *declared = &plan->fields[field];
    mpidata_block block = {.field = field, .ndim = declared->ndim};
    memcpy(block.shape, declared->shape, sizeof block.shape);
    block.shape[declared->varying] = extent;
    MPIDATA_TRY(mpidata_block_check(plan, &block));
    if (declared->index_of >= 0 && extent)
        mpidata_range_of_indices(declared->element_size, values, mpidata_block_elements(&block), &block.start[MPIDATA_LEAST],
                                 &block.start[MPIDATA_GREATEST]);
    const int part = mpidata_parts_add(parts, heap, plan, &block, 0);
    if (part < 0) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for field '%s'. Lower buffer.capacity.", declared->name);
    if (extent) memcpy(parts->list[part].values, values, mpidata_block_bytes(plan, &block));
    return MPIDATA_SUCCESS;
}

void mpidata_parts_clear(mpidata_parts *parts, mpidata_heap *heap) {
    for (int i = 0; i < parts->n; i++) mpidata_heap_give_back(heap, parts->list[i].values);
    parts->n = 0;
    parts->bytes = 0;
}

void mpidata_parts_drop_mapped(mpidata_parts *parts, mpidata_heap *heap, const mpidata_plan *plan) {
    int kept = 0;
    for (int i = 0; i < parts->n; i++) {
        if (!parts->list[i].block.map) {
            parts->list[kept++] = parts->list[i];
            continue;
        }
        parts->bytes -= mpidata_block_bytes(plan, &parts->list[i].block);
        mpidata_heap_give_back(heap, parts->list[i].values);
    }
    parts->n = kept;
}

static int compare(const void *one, const void *other) {
    const mpidata_part *a = one, *b = other;
    if (a->block.field != b->block.field) return a->block.field < b->block.field ? -1 : 1;
    if (a->rank != b->rank) return a->rank < b->rank ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* By field and rank; those of a rank stay in the order of its calls. They are usually sorted already. */
static void sort(mpidata_part *list, int n) {
    int ordered = 1;
    for (int i = 1; i < n && ordered; i++) ordered = compare(&list[i - 1], &list[i]) <= 0;
    if (!ordered) qsort(list, (size_t)n, sizeof *list, compare);
}

static int64_t extent_of(const mpidata_plan *plan, const mpidata_part *part) {
    return part->block.shape[plan->fields[part->block.field].varying];
}

static int check_indices(const mpidata_parts *parts, const mpidata_plan *plan) {
    for (int i = 0; i < parts->n; i++) {
        const mpidata_part *part = &parts->list[i];
        const mpidata_field *field = &plan->fields[part->block.field];
        if (field->index_of < 0 || !extent_of(plan, part)) continue;
        const int64_t least = part->block.start[MPIDATA_LEAST], greatest = part->block.start[MPIDATA_GREATEST];
        const int64_t length = parts->numbers[field->index_of] < 0 ? 0 : parts->numbers[field->index_of];
        if (least >= 0 && greatest < length && least <= greatest) continue;
        return mpidata_error(MPIDATA_ERR_ARGUMENT, "Field '%s' has the index %lld, but there are %lld '%s', which are counted from %d "
                                                   "(rank %d of the group)",
                             field->name, (long long)((least < 0 ? least : greatest) + field->base), (long long)length,
                             plan->lengths[field->index_of].name, field->base, part->rank);
    }
    return MPIDATA_SUCCESS;
}

/* Number of parts before those of this rank and field. */
static int parts_before(const mpidata_parts *parts, int field, int rank) {
    int low = 0, high = parts->n;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        const mpidata_part *part = &parts->list[middle];
        if (part->block.field < field || (part->block.field == field && part->rank < rank))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Rows of a field that the ranks before this one have put; -1: none, or put by maps. */
static int64_t rows_before(const mpidata_parts *parts, const mpidata_plan *plan, int field, int rank) {
    int n;
    const mpidata_part *first = mpidata_parts_of(parts, field, &n), *next = parts->list + parts_before(parts, field, rank);
    if (!n || first->block.start[MPIDATA_LOCAL] == MPIDATA_JOINED_ROWS) return -1;
    return next > first ? next[-1].before + extent_of(plan, &next[-1]) : 0;
}

/* Where a rank's part of a length begins, from which its local numbers count. */
static int begin_of(const mpidata_parts *parts, const mpidata_plan *plan, const mpidata_part *local, int64_t *begin) {
    const mpidata_field *field = &plan->fields[local->block.field];
    int first = -1;
    for (int f = 0; f < plan->n_fields; f++) {
        const int64_t rows = plan->fields[f].length == field->index_of ? rows_before(parts, plan, f, local->rank) : -1;
        if (rows < 0 || (first >= 0 && rows == *begin)) continue;
        if (first >= 0)
            return mpidata_error(MPIDATA_ERR_ARGUMENT, "Field '%s' has local numbers of rank %d, but the ranks before it have put %lld "
                                                       "'%s' of field '%s' and %lld of '%s'",
                                 field->name, local->rank, (long long)*begin, plan->lengths[field->index_of].name,
                                 plan->fields[first].name, (long long)rows, plan->fields[f].name);
        first = f;
        *begin = rows;
    }
    if (first >= 0) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_ARGUMENT, "Field '%s' has local numbers, but no field with the length '%s' was put in parts, without "
                                               "maps, in this step: pass the map of its rows (rank %d of the group)",
                         field->name, plan->lengths[field->index_of].name, local->rank);
}

/* An overflow cannot be a valid index, and is refused either way. */
static int64_t sum(int64_t one, int64_t other) { return (int64_t)((uint64_t)one + (uint64_t)other); }

static int shift_local(const mpidata_parts *parts, const mpidata_plan *plan) {
    for (mpidata_part *part = parts->list, *end = part + parts->n; part < end; part++) {
        const mpidata_field *field = &plan->fields[part->block.field];
        int64_t begin = 0, *start = part->block.start;
        if (field->index_of < 0 || start[MPIDATA_LOCAL] <= 0 || !extent_of(plan, part)) continue;
        MPIDATA_TRY(begin_of(parts, plan, part, &begin));
        begin = sum(begin, start[MPIDATA_LOCAL] - 1);
        mpidata_shift_indices(field->element_size, part->values, mpidata_block_elements(&part->block), begin);
        start[MPIDATA_LEAST] = sum(start[MPIDATA_LEAST], begin);
        start[MPIDATA_GREATEST] = sum(start[MPIDATA_GREATEST], begin);
        start[MPIDATA_LOCAL] = 0;
    }
    return MPIDATA_SUCCESS;
}

/* The field that determines a length: a constant of the simulation, if one has it. */
static const mpidata_field *first_of(const mpidata_parts *parts, const mpidata_plan *plan, int length) {
    const mpidata_field *field = plan->fields;
    const int by_constant = parts->constants && parts->constants->numbers[length] >= 0;
    while (field->length != length || (by_constant && !field->per_simulation)) field++;
    return field;
}

/* The numbers of a sample start with those of its constants. */
static void begin_numbers(mpidata_parts *parts, const mpidata_plan *plan) {
    const mpidata_parts *constants = parts->constants;
    for (int l = 0; l < plan->n_lengths; l++) parts->numbers[l] = constants ? constants->numbers[l] : -1;
    for (int f = 0; f < plan->n_fields && constants; f++) {
        const mpidata_field *field = &plan->fields[f];
        if (field->per_simulation && field->given >= 0) parts->numbers[field->given] = constants->numbers[field->given];
    }
}

int mpidata_parts_join(mpidata_parts *parts, const mpidata_plan *plan) {
    sort(parts->list, parts->n);
    begin_numbers(parts, plan);
    mpidata_part *part = parts->list, *end = parts->list + parts->n;
    for (int f = 0; f < plan->n_fields; f++) {
        const mpidata_field *field = &plan->fields[f];
        mpidata_part *first = part;
        int64_t rows = 0;
        if (field->varying < 0 || field->per_simulation != parts->per_simulation) continue;
        for (; part < end && part->block.field == f; part++) {
            part->before = rows;
            rows += extent_of(plan, part);
        }
        if (field->given >= 0) parts->numbers[field->given] = part > first;
        if (field->given >= 0 && part == first && field->index_of < 0) continue; /* without a put there are no indices */
        if (field->given < 0 && part == first) return mpidata_error(MPIDATA_ERR_FIELD, "Field '%s' was not put", field->name);
        const mpidata_length *length = &plan->lengths[field->length];
        int64_t *known = &parts->numbers[field->length];
        if (*known >= 0 && *known != rows)
            return mpidata_error(MPIDATA_ERR_SHAPE, "Fields '%s' and '%s' have %lld and %lld '%s', which must be equal",
                                 first_of(parts, plan, field->length)->name, field->name, (long long)*known, (long long)rows, length->name);
        if (length->at_most && rows > length->at_most)
            return mpidata_error(MPIDATA_ERR_SHAPE, "The parts of field '%s' have %lld '%s', at most %lld are declared", field->name,
                                 (long long)rows, length->name, (long long)length->at_most);
        if (rows > INT_MAX / field->row)
            return mpidata_error(MPIDATA_ERR_SHAPE, "The parts of field '%s' have more than %d elements", field->name, INT_MAX);
        *known = rows;
    }
    for (int l = 0; l < plan->n_lengths && !parts->per_simulation; l++)
        if (parts->numbers[l] < 0) parts->numbers[l] = 0;
    MPIDATA_TRY(shift_local(parts, plan));
    return check_indices(parts, plan);
}

int mpidata_parts_join_known(mpidata_parts *parts, const mpidata_plan *plan, const int64_t *numbers) {
    MPIDATA_TRY(mpidata_parts_join(parts, plan));
    for (int f = 0; f < plan->n_fields; f++)
        if (plan->fields[f].given >= 0 && plan->fields[f].per_simulation == parts->per_simulation)
            parts->numbers[plan->fields[f].given] = numbers[plan->fields[f].given] != 0;
    return MPIDATA_SUCCESS;
}

const mpidata_part *mpidata_parts_of(const mpidata_parts *parts, int field, int *n) {
    const int first = parts_before(parts, field, INT_MIN);
    *n = parts_before(parts, field + 1, INT_MIN) - first;
    return parts->list + first;
}

/* Contiguous elements for one index of the dimension that varies. */
static int64_t inner_of(const mpidata_field *field) {
    int64_t inner = 1;
    for (int d = field->varying + 1; d < field->ndim; d++) inner *= field->shape[d];
    return inner;
}

/* Copy one part to index `at` of `all`; returns its extent. */
static int64_t copy_part(const mpidata_part *part, const mpidata_field *field, char *target, int64_t at, int64_t all, int64_t shift,
                         void *(*copy)(void *restrict, const void *restrict, size_t)) {
    const int64_t inner = inner_of(field), outer = field->row / inner, extent = part->block.shape[field->varying];
    const size_t size = field->element_size, row = (size_t)inner * size, bytes = (size_t)extent * row;
    for (int64_t o = 0; o < outer && extent; o++) { /* without extent, it may be NULL */
        char *to = target + (size_t)(o * all + at) * row;
        const char *from = part->values + (size_t)o * bytes;
        if (shift)
            mpidata_copy_indices(size, to, from, extent * inner, shift);
        else
            (void)copy(to, from, bytes);
    }
    return extent;
}

/* Zeros for a field that was not put, with the length of other fields. */
static void clear_part(const mpidata_field *field, char *target, int64_t at, int64_t all, int64_t extent) {
    const int64_t inner = inner_of(field), outer = field->row / inner;
    const size_t row = (size_t)inner * field->element_size;
    for (int64_t o = 0; o < outer && extent; o++) memset(target + (size_t)(o * all + at) * row, 0, (size_t)extent * row);
}

enum { FILL_AT_ONCE = 4096 }; /* bytes, or twice that: a block that is copied repeatedly stays in cache */

static void fill(char *target, size_t bytes, const void *element, size_t size) {
    size_t done = size;
    memcpy(target, element, size);
    for (size_t chunk = size; done < bytes; done += chunk) {
        if (done < FILL_AT_ONCE) chunk = done;
        memcpy(target + done, target, chunk < bytes - done ? chunk : bytes - done);
    }
}

/* Fill the indices from `from` to `all` with an element. */
static void pad_field(const mpidata_field *field, char *target, int64_t from, int64_t all, const void *element) {
    const int64_t inner = inner_of(field), outer = field->row / inner;
    const size_t row = (size_t)inner * field->element_size;
    for (int64_t o = 0; o < outer && from < all; o++)
        fill(target + (size_t)(o * all + from) * row, (size_t)(all - from) * row, element, field->element_size);
}

void mpidata_parts_copy(const mpidata_parts *parts, const mpidata_plan *plan, const mpidata_packing *packing, void *const *fields,
                        void *(*copy)(void *restrict, const void *restrict, size_t)) {
    mpidata_part *part = parts->list, *end = parts->list + parts->n;
    for (int f = 0; f < plan->n_fields; f++) {
        const mpidata_field *field = &plan->fields[f];
        if (field->varying < 0 || field->per_simulation != parts->per_simulation) continue;
        for (; part < end && !fields[f] && part->block.field == f;) part++;
        if (!fields[f]) continue;
        const int64_t shift = packing->shifted && packing->at && field->index_of >= 0 ? packing->at[field->index_of] : 0;
        const int64_t all = packing->all[field->length];
        int64_t at = packing->at ? packing->at[field->length] : 0;
        char *target = (char *)fields[f] + (size_t)(packing->place * all * field->row) * field->element_size;
        if (part == end || part->block.field != f) clear_part(field, target, at, all, parts->numbers[field->length]);
        for (; part < end && part->block.field == f; part++) at += copy_part(part, field, target, at, all, shift, copy);
        if (packing->fill) pad_field(field, target, parts->numbers[field->length], all, packing->fill[f]);
    }
}

void mpidata_parts_join_field(const mpidata_parts *parts, const mpidata_plan *plan, int field, char *target) {
    const mpidata_field *declared = &plan->fields[field];
    int n;
    int64_t at = 0;
    const mpidata_part *part = mpidata_parts_of(parts, field, &n);
    if (!n) clear_part(declared, target, 0, parts->numbers[declared->length], parts->numbers[declared->length]);
    for (const mpidata_part *end = part + n; part < end; part++)
        at += copy_part(part, declared, target, at, parts->numbers[declared->length], 0, memcpy);
}
