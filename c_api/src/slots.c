#include "slots.h"

#include <stdlib.h>
#include <string.h>

void mpidata_slots_open(mpidata_slots *slots, const mpidata_plan *plan) {
    memset(slots, 0, sizeof *slots);
    slots->plan = plan;
}

void mpidata_slots_close(mpidata_slots *slots) {
    for (int64_t i = 0; i < slots->n_slots; i++) {
        free(slots->slots[i]->fields);
        free(slots->slots[i]);
    }
    free(slots->slots);
    free(slots->free);
    memset(slots, 0, sizeof *slots);
}

static int reserve(mpidata_slots *slots) {
    if (slots->n_slots < slots->allocated) return 0;
    int64_t allocated = slots->allocated ? 2 * slots->allocated : 64;
    void *grown = realloc(slots->slots, (size_t)allocated * sizeof *slots->slots);
    if (!grown) return -1;
    slots->slots = grown;
    grown = realloc(slots->free, (size_t)allocated * sizeof *slots->free);
    if (!grown) return -1;
    slots->free = grown;
    slots->allocated = allocated;
    return 0;
}

int64_t mpidata_slots_take(mpidata_slots *slots) {
    if (slots->n_free) return slots->free[--slots->n_free];
    if (reserve(slots)) return -1;
    size_t parameters = ((size_t)slots->plan->n_parameters * sizeof(double) + 63) & ~(size_t)63;
    mpidata_slot *slot = calloc(1, sizeof *slot);
    char *memory = aligned_alloc(64, slots->plan->slot_bytes + parameters + 64);
    if (!slot || !memory) {
        free(slot);
        free(memory);
        return -1;
    }
    slot->fields = memory;
    slot->parameters = (double *)(void *)(memory + slots->plan->slot_bytes);
    slots->slots[slots->n_slots] = slot;
    return slots->n_slots++;
}

void mpidata_slots_give_back(mpidata_slots *slots, int64_t number) {
    mpidata_slot *slot = slots->slots[number];
    slot->unowned = slot->pins > 0;
    if (!slot->unowned) slots->free[slots->n_free++] = number;
}

void mpidata_slots_unpin(mpidata_slots *slots, int64_t number) {
    mpidata_slot *slot = slots->slots[number];
    if (--slot->pins == 0 && slot->unowned) mpidata_slots_give_back(slots, number);
}

int mpidata_slots_append(int64_t **list, int64_t *n, int64_t *allocated, int64_t number) {
    if (*n == *allocated) {
        int64_t grown_size = *allocated ? 2 * *allocated : 64;
        int64_t *grown = realloc(*list, (size_t)grown_size * sizeof **list);
        if (!grown) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a list of samples.");
        *list = grown;
        *allocated = grown_size;
    }
    (*list)[(*n)++] = number;
    return MPIDATA_SUCCESS;
}
