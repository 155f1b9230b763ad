#include "buffer/constants/try_constants.h"

#include <stdlib.h>
#include <string.h>

static mpidata_try_constants **chain_of(mpidata_constants_set *set, int64_t simulation) {
    return &set->chains[(uint64_t)simulation % MPIDATA_CONSTANTS_CHAINS];
}

static void free_one(mpidata_try_constants *constants) {
    if (!constants) return;
    free(constants->parts.list);
    free(constants->parts.numbers);
    free(constants->values);
    free(constants->moments);
    free(constants);
}

void mpidata_constants_close(mpidata_constants_set *set) {
    for (int i = 0; i < MPIDATA_CONSTANTS_CHAINS; i++)
        for (mpidata_try_constants *constants = set->chains[i], *next; constants; constants = next) {
            next = constants->next;
            free_one(constants); /* the heap is freed as a whole */
        }
}

static size_t box_bytes(const mpidata_field *field) { return (size_t)field->row * field->element_size; }

static int is_box(const mpidata_field *field) { return field->per_simulation && field->varying < 0; }

static void give_values_back(mpidata_constants_set *set, mpidata_try_constants *constants) {
    for (int f = 0; f < set->plan->n_fields; f++)
        if (is_box(&set->plan->fields[f])) mpidata_heap_give_back(set->heap, constants->values[f]);
    mpidata_parts_clear(&constants->parts, set->heap);
}

static int take_values(mpidata_constants_set *set, mpidata_try_constants *constants) {
    for (int f = 0; f < set->plan->n_fields; f++) {
        const mpidata_field *field = &set->plan->fields[f];
        if (is_box(field) && !(constants->values[f] = mpidata_heap_take(set->heap, box_bytes(field)))) return -1;
    }
    return 0;
}

mpidata_try_constants *mpidata_constants_new(mpidata_constants_set *set, int group, int64_t by_try,
                                             int64_t simulation) {
    const mpidata_plan *plan = set->plan;
    const size_t n_moments = (size_t)plan->n_moments, n_numbers = (size_t)plan->n_numbers;
    mpidata_try_constants *constants = calloc(1, sizeof *constants);
    if (!constants) return NULL;
    *constants = (mpidata_try_constants){.group = group, .by_try = by_try, .simulation = simulation, .references = 1,
                                         .batch = -1};
    constants->parts.per_simulation = 1;
    constants->parts.numbers = calloc(n_numbers + 1, sizeof *constants->parts.numbers);
    constants->values = calloc((size_t)plan->n_fields, sizeof *constants->values);
    constants->moments = n_moments ? calloc(n_moments, sizeof *constants->moments) : NULL;
    if (!constants->parts.numbers || !constants->values || (n_moments && !constants->moments) ||
        take_values(set, constants)) {
        if (constants->values) give_values_back(set, constants);
        free_one(constants);
        return NULL;
    }
    if (n_moments) mpidata_moments_clear(constants->moments, plan->n_moments);
    mpidata_try_constants **chain = chain_of(set, simulation);
    constants->next = *chain;
    *chain = constants;
    set->n++;
    return constants;
}

mpidata_try_constants *mpidata_constants_find(const mpidata_constants_set *set, int group, int64_t by_try,
                                              int64_t simulation) {
    mpidata_try_constants *constants = set->chains[(uint64_t)simulation % MPIDATA_CONSTANTS_CHAINS];
    while (constants &&
           (constants->simulation != simulation || constants->group != group || constants->by_try != by_try))
        constants = constants->next;
    return constants;
}

mpidata_try_constants *mpidata_constants_of_simulation(const mpidata_constants_set *set, int64_t simulation) {
    if (simulation < 0) return NULL;
    mpidata_try_constants *constants = set->chains[(uint64_t)simulation % MPIDATA_CONSTANTS_CHAINS];
    while (constants && (constants->simulation != simulation || !constants->whole)) constants = constants->next;
    return constants;
}

void mpidata_constants_release(mpidata_constants_set *set, mpidata_try_constants *constants) {
    if (!constants || --constants->references) return;
    mpidata_try_constants **link = chain_of(set, constants->simulation);
    while (*link != constants) link = &(*link)->next;
    *link = constants->next;
    set->n--;
    give_values_back(set, constants);
    free_one(constants);
}

void mpidata_constants_leave_out(mpidata_constants_set *set, mpidata_try_constants *constants, int field) {
    mpidata_heap_give_back(set->heap, constants->values[field]);
    constants->values[field] = NULL;
}

/* Replace the parts of one field by one. */
static int join_field(mpidata_constants_set *set, mpidata_parts *parts, int field) {
    const mpidata_field *declared = &set->plan->fields[field];
    int n;
    mpidata_part *first = &parts->list[mpidata_parts_of(parts, field, &n) - parts->list];
    if (n < 2) return MPIDATA_SUCCESS;
    mpidata_block block = first->block;
    block.shape[declared->varying] = parts->numbers[declared->length];
    char *joined = mpidata_heap_take(set->heap, mpidata_block_bytes(set->plan, &block));
    if (!joined) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for field '%s', which is joined",
                                      declared->name);
    mpidata_parts_join_field(parts, set->plan, field, joined);
    for (int i = 0; i < n; i++) mpidata_heap_give_back(set->heap, first[i].values);
    first->block = block;
    first->values = joined;
    const ptrdiff_t rest = parts->list + parts->n - (first + n);
    memmove(first + 1, first + n, (size_t)rest * sizeof *first);
    parts->n -= n - 1;
    return MPIDATA_SUCCESS;
}

static void find_values(mpidata_try_constants *constants) {
    for (int i = 0; i < constants->parts.n; i++) {
        const mpidata_part *part = &constants->parts.list[i];
        constants->values[part->block.field] = part->values;
    }
    constants->whole = 1;
}

int mpidata_constants_join(mpidata_constants_set *set, mpidata_try_constants *constants) {
    const mpidata_plan *plan = set->plan;
    MPIDATA_TRY(mpidata_parts_join(&constants->parts, plan));
    for (int f = 0; f < plan->n_fields; f++)
        if (plan->fields[f].per_simulation &&
            plan->fields[f].varying >= 0) MPIDATA_TRY(join_field(set, &constants->parts, f));
    find_values(constants);
    return MPIDATA_SUCCESS;
}

static int fill_field(mpidata_constants_set *set, mpidata_try_constants *constants, int f, const void *values,
                      const int64_t *numbers) {
    const mpidata_field *field = &set->plan->fields[f];
    int64_t shape[MPIDATA_MAX_NDIM];
    memcpy(shape, field->shape, sizeof shape);
    if (field->varying < 0) {
        memcpy(constants->values[f], values, box_bytes(field));
    } else {
        shape[field->varying] = numbers[field->length];
        MPIDATA_TRY(mpidata_parts_fill(&constants->parts, set->heap, set->plan, f, numbers[field->length], values));
    }
    if (set->plan->n_moments && field->channel_axis != MPIDATA_NO_STATISTICS &&
        (field->varying < 0 || numbers[field->length]))
        mpidata_moments_of_block(field, shape, values, constants->moments + field->moments);
    return MPIDATA_SUCCESS;
}

int mpidata_constants_fill(mpidata_constants_set *set, mpidata_try_constants *constants, const void *const *fields,
                           const int64_t *numbers) {
    const mpidata_plan *plan = set->plan;
    for (int f = 0; f < plan->n_fields; f++) {
        const mpidata_field *field = &plan->fields[f];
        if (!field->per_simulation) continue;
        const int given = field->given < 0 || numbers[field->given];
        if (given && fields[f]) MPIDATA_TRY(fill_field(set, constants, f, fields[f], numbers));
        if (!given && field->varying < 0) mpidata_constants_leave_out(set, constants, f);
    }
    MPIDATA_TRY(mpidata_parts_join_known(&constants->parts, plan, numbers));
    find_values(constants);
    return MPIDATA_SUCCESS;
}

size_t mpidata_constants_bytes(const mpidata_try_constants *constants, const mpidata_plan *plan, int field) {
    const mpidata_field *declared = &plan->fields[field];
    const int64_t extent = declared->varying < 0 ? 1 : constants->parts.numbers[declared->length];
    return constants->values[field] && extent > 0 ? (size_t)extent * box_bytes(declared) : 0;
}

void mpidata_constants_copy(const mpidata_try_constants *constants, const mpidata_plan *plan, int64_t *numbers,
                            int64_t i,
                            const mpidata_packing *packing, void *const *fields,
                            void *(*copy)(void *restrict, const void *restrict, size_t)) {
    mpidata_parts parts = constants->parts;
    parts.numbers = numbers; /* constants that were not put may take their length from fields of the step */
    for (int f = 0; f < plan->n_fields; f++) {
        const mpidata_field *field = &plan->fields[f];
        if (!is_box(field) || !fields[f]) continue;
        const size_t bytes = box_bytes(field);
        char *target = (char *)fields[f] + (size_t)i * bytes;
        if (constants->values[f])
            (void)copy(target, constants->values[f], bytes);
        else
            memset(target, 0, bytes);
    }
    if (plan->n_lengths) mpidata_parts_copy(&parts, plan, packing, fields, copy);
}
