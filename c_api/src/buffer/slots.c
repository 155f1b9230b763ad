#include "buffer/slots.h"

#include <stdlib.h>
#include <string.h>

#include "containers/array.h"

/* -- layout --------------------------------------------------------------------------------------------------------- */

static size_t field_bytes(const mpidata_field *field) { return (size_t)field->elements * field->element_size; }

static size_t tail_bytes(const mpidata_plan *plan) {
    return (size_t)plan->n_parameters * sizeof(double) + sizeof(double) + 2 * sizeof(int64_t);
}

static int lay_out(mpidata_page_layout *layout, const mpidata_plan *plan, int64_t count) {
    if ((size_t)count > SIZE_MAX / 4 / (plan->slot_bytes + tail_bytes(plan))) return -1;
    if (!mpidata_array_resize(&layout->fields, plan->n_fields + 1, sizeof *layout->fields)) return -1;
    size_t *fields = layout->fields, at = 0;
    for (int f = 0; f < plan->n_fields; f++) {
        fields[f] = at;
        at += ((size_t)count * field_bytes(&plan->fields[f]) + 63) & ~(size_t)63;
    }
    *layout = (mpidata_page_layout){.count = count, .fields = fields, .tail = at};
    layout->bytes = at + (size_t)count * tail_bytes(plan);
    return 0;
}

char *mpidata_slot_field(const mpidata_slots *slots, const mpidata_slot *slot, int field) {
    const mpidata_page *page = slot->page;
    return page->memory + page->layout->fields[field] + (size_t)slot->index * field_bytes(&slots->plan->fields[field]);
}

void mpidata_slot_copy(const mpidata_slots *slots, const mpidata_slot *slot, int64_t i, const mpidata_packing *packing,
                       void *const *fields, void *(*copy)(void *restrict, const void *restrict, size_t)) {
    for (int f = 0; f < slots->plan->n_fields; f++) {
        const size_t bytes = field_bytes(&slots->plan->fields[f]);
        if (bytes) (void)copy((char *)fields[f] + (size_t)i * bytes, mpidata_slot_field(slots, slot, f), bytes);
    }
    if (slots->plan->n_lengths) mpidata_parts_copy(&slot->parts, slots->plan, packing, fields, copy);
    if (slot->constants) mpidata_constants_copy(slot->constants, slots->plan, slot->parts.numbers, i, packing, fields, copy);
}

/* -- pages ---------------------------------------------------------------------------------------------------------- */

int mpidata_slots_open(mpidata_slots *slots, const mpidata_plan *plan) {
    memset(slots, 0, sizeof *slots);
    slots->plan = plan;
    slots->constants = (mpidata_constants_set){.plan = plan, .heap = &slots->heap};
    for (int f = 0; f < plan->n_fields; f++) slots->alike += (int64_t)field_bytes(&plan->fields[f]);
    return lay_out(&slots->one, plan, 1);
}

int mpidata_slots_batch(mpidata_slots *slots, int64_t count) { return lay_out(&slots->batch, slots->plan, count); }

void mpidata_slots_close(mpidata_slots *slots) {
    for (int64_t i = 0; i < slots->n_slots;) {
        mpidata_page *page = slots->slots[i]->page;
        i += page->layout->count;
        for (int64_t of = 0; of < page->layout->count; of++) free(page->slots[of].parts.list);
        free(page->slots[0].moments);
        free(page->slots[0].parts.numbers);
        free(page);
    }
    mpidata_constants_close(&slots->constants);
    mpidata_arena_close(&slots->arena);
    mpidata_heap_close(&slots->heap);
    free(slots->one.fields);
    free(slots->batch.fields);
    free(slots->slots);
    memset(slots, 0, sizeof *slots);
}

static int reserve(mpidata_slots *slots, int64_t count) {
    return mpidata_array_reserve(&slots->slots, &slots->allocated, slots->n_slots + count, 64, sizeof *slots->slots) ? 0 : -1;
}

static mpidata_page *new_page(mpidata_slots *slots, const mpidata_page_layout *layout) {
    if (reserve(slots, layout->count)) return NULL;
    mpidata_page *page = calloc(1, sizeof *page + (size_t)layout->count * sizeof page->slots[0]);
    char *memory = mpidata_arena_take(&slots->arena, layout->bytes);
    int64_t n_moments = slots->plan->n_moments, n_numbers = slots->plan->n_numbers;
    mpidata_moments *moments = n_moments ? calloc((size_t)(layout->count * n_moments), sizeof *moments) : NULL;
    int64_t *numbers = n_numbers ? calloc((size_t)(layout->count * n_numbers), sizeof *numbers) : NULL;
    if (!page || !memory || (n_moments && !moments) || (n_numbers && !numbers)) {
        free(page);
        free(moments);
        free(numbers);
        return NULL;
    }
    *page = (mpidata_page){.layout = layout, .memory = memory, .first = slots->n_slots};
    int64_t n = layout->count, n_parameters = slots->plan->n_parameters;
    double *parameters = (double *)(void *)(memory + layout->tail), *time = parameters + n * n_parameters;
    int64_t *step = (int64_t *)(void *)(time + n), *simulation = step + n;
    for (int64_t i = 0; i < n; i++) {
        page->slots[i] = (mpidata_slot){.page = page, .index = i, .parameters = parameters + i * n_parameters,
                                        .time = time + i, .simulation = simulation + i, .step = step + i,
                                        .moments = moments ? moments + i * n_moments : NULL,
                                        .parts.numbers = numbers ? numbers + i * n_numbers : NULL};
        slots->slots[slots->n_slots++] = &page->slots[i];
    }
    return page;
}

static mpidata_page *take_page(mpidata_slots *slots, const mpidata_page_layout *layout, mpidata_page **free_pages) {
    mpidata_page *page = *free_pages;
    if (page) *free_pages = page->next;
    return page ? page : new_page(slots, layout);
}

static void page_empty(mpidata_slots *slots, mpidata_page *page) {
    mpidata_page **free_pages = page->layout == &slots->one ? &slots->free_one : &slots->free_batch;
    page->next = *free_pages;
    *free_pages = page;
}

size_t mpidata_slot_bytes(const mpidata_slots *slots, const mpidata_slot *slot) {
    return slots->plan->slot_bytes + slot->parts.bytes;
}

int64_t mpidata_slot_size(const mpidata_slots *slots, const mpidata_slot *slot) {
    return slots->alike + (int64_t)slot->parts.bytes + slots->plan->n_lengths * (int64_t)sizeof *slot->parts.numbers;
}

/* -- slots ---------------------------------------------------------------------------------------------------------- */

int mpidata_slot_fill(mpidata_slots *slots, mpidata_slot *slot, const void *const *fields, const int64_t *numbers) {
    const mpidata_plan *plan = slots->plan;
    for (int f = 0; f < plan->n_fields; f++) {
        const mpidata_field *field = &plan->fields[f];
        if (field->per_simulation) continue;
        if (field->varying < 0)
            memcpy(mpidata_slot_field(slots, slot, f), fields[f], field_bytes(field));
        else
            MPIDATA_TRY(mpidata_parts_fill(&slot->parts, &slots->heap, plan, f, numbers[field->length], fields[f]));
    }
    return plan->n_numbers ? mpidata_parts_join_known(&slot->parts, plan, numbers) : MPIDATA_SUCCESS;
}

int mpidata_slot_fill_constants(mpidata_slots *slots, mpidata_slot *slot, const void *const *fields, const int64_t *numbers,
                                int group, int64_t by_try, int64_t simulation) {
    mpidata_constants_set *set = &slots->constants;
    mpidata_try_constants *constants = mpidata_constants_keep(mpidata_constants_find(set, group, by_try, simulation));
    int status = MPIDATA_SUCCESS;
    if (!constants) {
        if (!(constants = mpidata_constants_new(set, group, by_try, simulation)))
            return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the constants of a simulation. Lower buffer.capacity.");
        status = mpidata_constants_fill(set, constants, fields, numbers);
    }
    if (!status) mpidata_slot_set_constants(slot, constants);
    mpidata_constants_release(set, constants);
    return status;
}

void mpidata_slot_set_constants(mpidata_slot *slot, mpidata_try_constants *constants) {
    slot->constants = mpidata_constants_keep(constants);
    slot->parts.constants = constants ? &constants->parts : NULL;
}

static void let_go_of_constants(mpidata_slots *slots, mpidata_slot *slot) {
    mpidata_constants_release(&slots->constants, slot->constants);
    mpidata_slot_set_constants(slot, NULL);
}

static int64_t take(mpidata_slots *slots, int64_t ahead) {
    mpidata_page *page;
    if (ahead >= 0 && !slots->filling && slots->batch.count && ahead % slots->batch.count == 0) {
        if (!(slots->filling = take_page(slots, &slots->batch, &slots->free_batch))) return -1;
        slots->next = 0;
    }
    if (ahead < 0 || !slots->filling) {
        if (!(page = take_page(slots, &slots->one, &slots->free_one))) return -1;
        page->in_use = 1;
        return page->first;
    }
    page = slots->filling;
    page->in_use++;
    int64_t number = page->first + slots->next++;
    if (slots->next == page->layout->count) slots->filling = NULL;
    return number;
}

int64_t mpidata_slots_take(mpidata_slots *slots, int64_t ahead) {
    int64_t number = take(slots, ahead);
    if (number >= 0 && slots->plan->n_moments) mpidata_moments_clear(slots->slots[number]->moments, slots->plan->n_moments);
    return number;
}

void mpidata_slots_give_back(mpidata_slots *slots, int64_t number) {
    mpidata_slot *slot = slots->slots[number];
    slot->unowned = slot->pins > 0;
    if (!slot->unowned && (slots->plan->n_lengths || slot->parts.n)) mpidata_parts_clear(&slot->parts, &slots->heap);
    if (!slot->unowned && slot->constants) let_go_of_constants(slots, slot);
    if (!slot->unowned && --slot->page->in_use == 0 && slot->page != slots->filling) page_empty(slots, slot->page);
}

void mpidata_slots_unpin(mpidata_slots *slots, int64_t number) {
    mpidata_slot *slot = slots->slots[number];
    if (--slot->pins == 0 && slot->unowned) mpidata_slots_give_back(slots, number);
}

int mpidata_slots_append(int64_t **list, int64_t *n, int64_t *allocated, int64_t number) {
    if (!mpidata_array_reserve(list, allocated, *n + 1, 64, sizeof **list))
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a list of samples.");
    (*list)[(*n)++] = number;
    return MPIDATA_SUCCESS;
}
