#include "receive/giving/handed.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t MAGIC = 0x6d706964617461u;
static const int OF_OTHERS = -1; /* group of constants that no group has sent here */

static int no_memory(void) { return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a sample that another trainer draws."); }

/* Bytes of the values of a field; 0 if a constant was not put. */
static int64_t bytes_of(const mpidata_field *field, const int64_t *numbers) {
    if (field->per_simulation && field->given >= 0 && !numbers[field->given]) return 0;
    const int64_t extent = field->varying < 0 ? 1 : numbers[field->length];
    return extent * field->row * (int64_t)field->element_size;
}

static int64_t words_of(int64_t bytes) { return (bytes + 7) / 8; }

static int64_t words_before_fields(const mpidata_plan *plan) {
    return MPIDATA_HANDED_NO_MORE_WORDS + plan->n_parameters + plan->n_numbers;
}

static int64_t words_in_all(const mpidata_plan *plan, const int64_t *numbers) {
    int64_t words = words_before_fields(plan);
    for (int f = 0; f < plan->n_fields; f++) words += words_of(bytes_of(&plan->fields[f], numbers));
    return words;
}

static void pack_field(const mpidata_slots *slots, const mpidata_slot *slot, int f, int64_t bytes, int64_t *target) {
    const mpidata_field *field = &slots->plan->fields[f];
    if (field->per_simulation)
        memcpy(target, slot->constants->values[f], (size_t)bytes);
    else if (field->varying < 0)
        memcpy(target, mpidata_slot_field(slots, slot, f), (size_t)bytes);
    else
        mpidata_parts_join_field(&slot->parts, slots->plan, f, (char *)target);
}

int64_t *mpidata_handed_pack(const mpidata_slots *slots, const mpidata_slot *slot, int64_t *words) {
    const mpidata_plan *plan = slots->plan;
    const int64_t *numbers = slot->parts.numbers;
    *words = words_in_all(plan, numbers);
    int64_t *message = *words <= INT_MAX ? malloc((size_t)*words * sizeof *message) : NULL;
    if (!message) {
        (void)no_memory();
        return NULL;
    }
    const mpidata_handed_head head = {MAGIC, *slot->simulation, *slot->step, slot->constants ? slot->constants->by_try : 0,
                                      *slot->time};
    memcpy(message, &head, sizeof head);
    int64_t *at = message + MPIDATA_HANDED_NO_MORE_WORDS;
    if (plan->n_parameters) memcpy(at, slot->parameters, (size_t)plan->n_parameters * sizeof *at);
    at += plan->n_parameters;
    if (plan->n_numbers) memcpy(at, numbers, (size_t)plan->n_numbers * sizeof *at);
    at += plan->n_numbers;
    for (int f = 0; f < plan->n_fields; f++) {
        const int64_t bytes = bytes_of(&plan->fields[f], numbers);
        if (!bytes) continue;
        at[words_of(bytes) - 1] = 0; /* after the values */
        pack_field(slots, slot, f, bytes, at);
        at += words_of(bytes);
    }
    return message;
}

int64_t *mpidata_handed_pack_no_more(void) {
    const mpidata_handed_head head = {MAGIC, -1, 0, 0, 0.0};
    int64_t *message = malloc(sizeof head);
    if (message)
        memcpy(message, &head, sizeof head);
    else
        (void)no_memory();
    return message;
}

static int numbers_fit(const mpidata_plan *plan, const int64_t *numbers) {
    for (int f = 0; f < plan->n_fields; f++) {
        const mpidata_field *field = &plan->fields[f];
        const int absent = field->per_simulation && field->given >= 0 && !numbers[field->given];
        if (field->varying < 0 || absent) continue;
        if (numbers[field->length] < 0 || numbers[field->length] > INT_MAX / field->row) return 0;
    }
    return 1;
}

static int fits(const mpidata_plan *plan, const int64_t *message, int64_t words, const mpidata_handed_head *head) {
    const int64_t *numbers = message + MPIDATA_HANDED_NO_MORE_WORDS + plan->n_parameters;
    if (head->magic != MAGIC) return 0;
    if (head->simulation < 0) return words == MPIDATA_HANDED_NO_MORE_WORDS;
    return head->simulation < plan->simulations && head->step >= 0 && head->step < MPIDATA_STEPS_MAX &&
           words >= words_before_fields(plan) && numbers_fit(plan, numbers) && words == words_in_all(plan, numbers);
}

int mpidata_handed_check(const mpidata_plan *plan, const int64_t *message, int64_t words, const mpidata_handed_head **head) {
    *head = (const mpidata_handed_head *)(const void *)message;
    if (words >= MPIDATA_HANDED_NO_MORE_WORDS && fits(plan, message, words, *head)) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_WIRE, "A message from another trainer is not a sample of this job (%lld bytes). Use one build "
                                           "of libmpidata for the whole job.", (long long)words * 8);
}

int mpidata_handed_unpack(mpidata_slots *slots, const int64_t *message, mpidata_slot *slot) {
    const mpidata_plan *plan = slots->plan;
    const mpidata_handed_head *head = (const mpidata_handed_head *)(const void *)message;
    const int64_t *parameters = message + MPIDATA_HANDED_NO_MORE_WORDS, *numbers = parameters + plan->n_parameters;
    const int64_t *at = numbers + plan->n_numbers;
    const void **fields = malloc((size_t)plan->n_fields * sizeof *fields);
    if (!fields) return no_memory();
    for (int f = 0; f < plan->n_fields; f++) {
        const int absent = plan->fields[f].given >= 0 && !numbers[plan->fields[f].given];
        fields[f] = plan->fields[f].per_simulation && absent ? NULL : at;
        at += words_of(bytes_of(&plan->fields[f], numbers));
    }
    if (plan->n_parameters) memcpy(slot->parameters, parameters, (size_t)plan->n_parameters * sizeof *parameters);
    *slot->time = head->time;
    *slot->step = head->step;
    *slot->simulation = head->simulation;
    int status = MPIDATA_SUCCESS;
    if (plan->n_constants)
        status = mpidata_slot_fill_constants(slots, slot, fields, numbers, OF_OTHERS, head->by_try, head->simulation);
    if (!status) status = mpidata_slot_fill(slots, slot, fields, numbers);
    free(fields);
    return status;
}
