#define _POSIX_C_SOURCE 200809L
#include "plan_text/plan_fields.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "containers/array.h"

/* In the order of mpidata_dtype, which begins at 1. */
static const struct { const char *name; size_t size; int moments; } dtypes[] = {
#define ROW(in_c, name, type, kind, in_mpi, moments) {#name, sizeof(type), MPIDATA_MOMENTS_##moments},
    MPIDATA_DTYPES(ROW)
};
enum { N_DTYPES = sizeof dtypes / sizeof dtypes[0] };

size_t mpidata_dtype_size(unsigned dtype) { return dtype - 1 < N_DTYPES ? dtypes[dtype - 1].size : 0; }

const char *mpidata_dtype_name(unsigned dtype) { return dtype - 1 < N_DTYPES ? dtypes[dtype - 1].name : "no dtype"; }

int mpidata_plan_integer(const char *text, int64_t low, int64_t high, int64_t *value) {
    char *end;
    errno = 0;
    long long parsed = strtoll(text, &end, 10);
    if (errno || end == text || *end != '\0' || parsed < low || parsed > high) return MPIDATA_PLAN_BAD;
    *value = parsed;
    return MPIDATA_PLAN_GOOD;
}

/* A length by its name; -1: there is none. */
static int find_length(const mpidata_plan *plan, const char *name) {
    for (int i = 0; i < plan->n_lengths; i++)
        if (!strcmp(plan->lengths[i].name, name)) return i;
    return -1;
}

/* "nodes 6000", or 0 */
int mpidata_plan_append_length(mpidata_plan *plan, const char *value) {
    mpidata_length length = {.at_most = 0};
    const char *blank = strchr(value, ' ');
    size_t n = blank ? (size_t)(blank - value) : 0;
    if (!n || n >= MPIDATA_NAME_MAX || mpidata_plan_integer(blank + 1, 0, INT_MAX, &length.at_most))
        return MPIDATA_PLAN_BAD;
    memcpy(length.name, value, n);
    if (find_length(plan, length.name) >= 0 || plan->n_numbers > plan->n_lengths) return MPIDATA_PLAN_BAD;
    if (!mpidata_array_resize(&plan->lengths, plan->n_lengths + 1, sizeof *plan->lengths))
        return MPIDATA_PLAN_NO_MEMORY;
    plan->lengths[plan->n_lengths++] = length;
    plan->n_numbers++;
    return MPIDATA_PLAN_GOOD;
}

/* "64", or the name of a length. */
static int parse_extent(const mpidata_plan *plan, const char *extent, int d, mpidata_field *field) {
    const int length = extent ? find_length(plan, extent) : -1;
    if (length >= 0) {
        if (field->varying >= 0) return MPIDATA_PLAN_BAD;
        field->varying = d;
        field->length = length;
        return MPIDATA_PLAN_GOOD;
    }
    if (!extent || mpidata_plan_integer(extent, 1, INT_MAX, &field->shape[d]) || field->row > INT_MAX / field->shape[d])
        return MPIDATA_PLAN_BAD;
    field->row *= field->shape[d];
    return MPIDATA_PLAN_GOOD;
}

/* "temperature float32 2 64 64", or "xy float32 2 nodes 2" */
static int parse_field(const mpidata_plan *plan, const char *value, mpidata_field *field) {
    char copy[512], *rest = NULL;
    int64_t ndim = 0;
    if (strlen(value) >= sizeof copy) return MPIDATA_PLAN_BAD;
    strcpy(copy, value);
    const char *name = strtok_r(copy, " ", &rest), *dtype = strtok_r(NULL, " ", &rest), *n = strtok_r(NULL, " ", &rest);
    if (!name || !dtype || !n || strlen(name) >= MPIDATA_NAME_MAX) return MPIDATA_PLAN_BAD;
    if (mpidata_plan_integer(n, 0, MPIDATA_PLAN_NDIM, &ndim)) return MPIDATA_PLAN_BAD;
    strcpy(field->name, name);
    field->ndim = (int)ndim;
    for (unsigned i = 0; i < N_DTYPES; i++)
        if (!strcmp(dtypes[i].name, dtype)) field->dtype = i + 1;
    if (!field->dtype) return MPIDATA_PLAN_BAD;
    field->element_size = mpidata_dtype_size(field->dtype);
    field->row = 1;
    field->varying = field->length = field->index_of = field->given = -1;
    for (int d = 0; d < field->ndim; d++)
        if (parse_extent(plan, strtok_r(NULL, " ", &rest), d, field)) return MPIDATA_PLAN_BAD;
    field->elements = field->varying < 0 ? field->row : 0;
    return strtok_r(NULL, " ", &rest) ? MPIDATA_PLAN_BAD : MPIDATA_PLAN_GOOD;
}

int mpidata_plan_append_field(mpidata_plan *plan, const char *value) {
    mpidata_field field = {.dtype = 0};
    if (parse_field(plan, value, &field)) return MPIDATA_PLAN_BAD;
    if (!mpidata_array_resize(&plan->fields, plan->n_fields + 1, sizeof *plan->fields)) return MPIDATA_PLAN_NO_MEMORY;
    plan->fields[plan->n_fields++] = field;
    plan->slot_bytes += ((size_t)field.elements * field.element_size + 63) & ~(size_t)63;
    return MPIDATA_PLAN_GOOD;
}

/* "edges nodes 1": the values of the field count along nodes, from 1. */
int mpidata_plan_index(mpidata_plan *plan, const char *value) {
    char copy[512], *rest = NULL;
    int64_t base;
    if (strlen(value) >= sizeof copy) return MPIDATA_PLAN_BAD;
    strcpy(copy, value);
    const char *name = strtok_r(copy, " ", &rest), *length = strtok_r(NULL, " ", &rest),
        *from = strtok_r(NULL, " ", &rest);
    if (!from || mpidata_plan_integer(from, 0, 1, &base)) return MPIDATA_PLAN_BAD;
    for (int f = 0; f < plan->n_fields; f++) {
        mpidata_field *field = &plan->fields[f];
        const char *dtype = mpidata_dtype_name(field->dtype);
        if (strcmp(field->name, name) || field->index_of >= 0) continue;
        if (field->varying < 0 || (strcmp(dtype, "int32") && strcmp(dtype, "int64"))) return MPIDATA_PLAN_BAD;
        field->index_of = find_length(plan, length);
        field->base = (int)base;
        return field->index_of < 0 ? MPIDATA_PLAN_BAD : MPIDATA_PLAN_GOOD;
    }
    return MPIDATA_PLAN_BAD;
}

/* Its number follows those of all lengths. */
int mpidata_plan_optional(mpidata_plan *plan, const char *name) {
    for (int f = 0; f < plan->n_fields; f++) {
        mpidata_field *field = &plan->fields[f];
        if (strcmp(field->name, name) || field->given >= 0) continue;
        field->given = plan->n_numbers++;
        return MPIDATA_PLAN_GOOD;
    }
    return MPIDATA_PLAN_BAD;
}

/* Its values are in no step. */
int mpidata_plan_constant(mpidata_plan *plan, const char *name) {
    for (int f = 0; f < plan->n_fields; f++) {
        mpidata_field *field = &plan->fields[f];
        if (strcmp(field->name, name) || field->per_simulation) continue;
        plan->slot_bytes -= ((size_t)field->elements * field->element_size + 63) & ~(size_t)63;
        field->elements = 0;
        field->per_simulation = 1;
        plan->n_constants++;
        return MPIDATA_PLAN_GOOD;
    }
    return MPIDATA_PLAN_BAD;
}

static int bad_statistics(char *wrong, const char *what) {
    (void)snprintf(wrong, MPIDATA_PLAN_WRONG, "%s", what);
    return MPIDATA_PLAN_BAD;
}

/* "-1 0 -2": for the first field over all values, for the second one by its first axis, for the third one none. */
int mpidata_plan_statistics(mpidata_plan *plan, char *wrong) {
    const char *misfit = "has 'statistics' that do not fit its fields";
    char copy[512], *rest = NULL;
    int64_t axis, channels = 0;
    if (!plan->statistics) return MPIDATA_PLAN_GOOD;
    if (strlen(plan->statistics) >= sizeof copy) return bad_statistics(wrong, misfit);
    strcpy(copy, plan->statistics);
    for (int f = 0; f < plan->n_fields; f++) {
        mpidata_field *field = &plan->fields[f];
        const char *word = strtok_r(f ? NULL : copy, " ", &rest);
        if (!word || mpidata_plan_integer(word, MPIDATA_NO_STATISTICS, field->ndim - 1, &axis))
            return bad_statistics(wrong, misfit);
        if (axis != MPIDATA_NO_STATISTICS && !dtypes[field->dtype - 1].moments) return bad_statistics(wrong, misfit);
        if (axis >= 0 && axis == field->varying) return bad_statistics(wrong, misfit);
        field->channel_axis = (int)axis;
        field->moments = (int)channels;
        channels += axis == MPIDATA_NO_STATISTICS ? 0 : axis < 0 ? 1 : field->shape[axis];
        if (channels > MPIDATA_PLAN_CHANNELS) return bad_statistics(wrong, "has 'statistics' of too many channels");
    }
    if (strtok_r(NULL, " ", &rest)) return bad_statistics(wrong, misfit);
    plan->n_moments = (int)channels;
    return MPIDATA_PLAN_GOOD;
}
