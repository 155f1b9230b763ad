#include "calls/put_check.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "dtypes/convert.h"
#include "program/single_run.h"

/* Write a shape, with the name of the length for the dimension that varies. */
static void shape_text(int ndim, const int64_t *shape, int varying, const char *length, char *text, size_t size) {
    size_t used = (size_t)snprintf(text, size, "(");
    for (int d = 0; d < ndim && used < size; d++)
        used += (size_t)(d == varying ? snprintf(text + used, size - used, "%s%s", d ? ", " : "", length)
                                      : snprintf(text + used, size - used, "%s%lld", d ? ", " : "", (long long)shape[d]));
    if (used < size) (void)snprintf(text + used, size - used, ")");
}

static int check_arguments(const mpidata_put_arguments *put, const char **advice) {
    if (!put->field) {
        *advice = "Pass a name that the job file declares.";
        return mpidata_error(MPIDATA_ERR_ARGUMENT, "The field's name is NULL");
    }
    int64_t elements = 1;
    if (put->ndim < 0 || put->ndim > MPIDATA_MAX_NDIM || (put->ndim > 0 && !put->shape)) {
        *advice = "0 to 6 dimensions are possible.";
        return mpidata_error(MPIDATA_ERR_ARGUMENT, "Field '%.100s': %d dimensions%s", put->field, put->ndim,
                             put->ndim > 0 && !put->shape ? " and no shape" : "");
    }
    for (int d = 0; d < put->ndim; d++) {
        *advice = "Extents must not be negative.";
        if (put->shape[d] < 0)
            return mpidata_error(MPIDATA_ERR_ARGUMENT, "Field '%.100s': extent %lld in dimension %d", put->field,
                                 (long long)put->shape[d], d);
        elements *= put->shape[d] ? 1 : 0;
    }
    if (elements && !put->values) {
        *advice = "Pass the address of the array.";
        return mpidata_error(MPIDATA_ERR_ARGUMENT, "Field '%.100s': values is NULL", put->field);
    }
    *advice = "Use a value of mpidata_dtype, for example MPIDATA_FLOAT32.";
    if (!mpidata_dtype_size(put->dtype))
        return mpidata_error(MPIDATA_ERR_DTYPE, "Field '%.100s': %d is not a dtype", put->field, (int)put->dtype);
    return MPIDATA_SUCCESS;
}

static int find_field(const mpidata_plan *plan, const char *name, int *index, const char **advice) {
    char names[512];
    *index = mpidata_plan_field(plan, name);
    if (*index >= 0) return MPIDATA_SUCCESS;
    mpidata_plan_field_names(plan, names, sizeof names);
    *advice = "Correct the name, or add it to fields in the job file.";
    return mpidata_error(MPIDATA_ERR_FIELD, "Undeclared field '%.100s'; the job declares %s", name, names);
}

static int check_dtype(const mpidata_field *field, mpidata_dtype dtype, const char **advice) {
    if (mpidata_can_put(dtype, field->dtype)) return MPIDATA_SUCCESS;
    *advice = "Put the declared dtype, or change fields in the job file.";
    return mpidata_error(MPIDATA_ERR_DTYPE, "Field '%s' has dtype %s, but %s was put", field->name,
                         mpidata_dtype_name(field->dtype), mpidata_dtype_name(dtype));
}

static int check_whole_shape(const mpidata_field *field, const char *length, int ndim, const int64_t *shape, const char **advice) {
    int same = ndim == field->ndim;
    for (int d = 0; same && d < ndim; d++) same = d == field->varying || shape[d] == field->shape[d];
    if (same) return MPIDATA_SUCCESS;
    char declared[160 + MPIDATA_NAME_MAX], given[160];
    shape_text(field->ndim, field->shape, field->varying, length, declared, sizeof declared);
    shape_text(ndim, shape, -1, "", given, sizeof given);
    *advice = "Put the whole field (C order, last index fastest), or declare the shape that is put. Put a part of it as a "
              "block, with its start; the blocks of all ranks must cover the field in every step.";
    if (field->varying >= 0)
        *advice = "Put this rank's part of it (C order, last index fastest): only the dimension with a name may have another extent.";
    return mpidata_error(MPIDATA_ERR_SHAPE, "Field '%s' has shape %s, but %s was put", field->name, declared, given);
}

/* Check this rank's part of a field that varies. */
static int check_part(const mpidata_plan *plan, const mpidata_field *field, const mpidata_put_arguments *put, int64_t put_before,
                      const char **advice) {
    const mpidata_length *length = &plan->lengths[field->length];
    *advice = "Use mpidata_put: the parts of all ranks are joined in their order.";
    if (put->start)
        return mpidata_error(MPIDATA_ERR_BLOCK, "Field '%s' has the length '%s', which each sample has for itself, so its parts have no "
                                                "start", field->name, length->name);
    MPIDATA_TRY(check_whole_shape(field, length->name, put->ndim, put->shape, advice));
    const int64_t extent = put->shape[field->varying];
    *advice = "Put it in several parts: the parts of a rank are joined in the order of its calls.";
    if (extent > INT_MAX / field->row)
        return mpidata_error(MPIDATA_ERR_SHAPE, "Field '%s': a part of %lld elements is more than %d", field->name,
                             (long long)extent * (long long)field->row, INT_MAX);
    *advice = "Raise lengths in the job file, or put fewer.";
    const int64_t extents = extent + put_before / field->row; /* of this rank */
    if (length->at_most && extents > length->at_most)
        return mpidata_error(MPIDATA_ERR_SHAPE, "The parts of field '%s' have %lld '%s', at most %lld are declared", field->name,
                             (long long)extents, length->name, (long long)length->at_most);
    return MPIDATA_SUCCESS;
}

int mpidata_put_check(const mpidata_plan *plan, const mpidata_put_arguments *put, const int64_t *counts,
                      mpidata_block *block, const char **advice) {
    int index;
    MPIDATA_TRY(check_arguments(put, advice));
    if (!plan) return MPIDATA_SUCCESS;
    MPIDATA_TRY(find_field(plan, put->field, &index, advice));
    const mpidata_field *field = &plan->fields[index];
    MPIDATA_TRY(check_dtype(field, put->dtype, advice));
    *block = (mpidata_block){.field = index, .ndim = put->ndim};
    for (int d = 0; d < put->ndim; d++) {
        block->shape[d] = put->shape[d];
        block->start[d] = put->start ? put->start[d] : 0;
    }
    if (field->varying >= 0) return check_part(plan, field, put, counts[index], advice);
    if (!put->start && !put->by_map) MPIDATA_TRY(check_whole_shape(field, "", put->ndim, put->shape, advice));
    *advice = put->by_map ? "Put some of the rows: the other extents are the declared ones."
                          : "Indices start at 0 and count in C order (last index fastest).";
    block->map = put->by_map && put->ndim; /* for the check */
    const int status = mpidata_block_check(plan, block);
    block->map = 0;
    MPIDATA_TRY(status);
    int64_t in_all = counts[index] + mpidata_block_elements(block);
    *advice = field->per_simulation ? "Put it once, before the first step." : "Put each field once per step, and call mpidata_step.";
    if (in_all > field->row)
        return mpidata_error(MPIDATA_ERR_FIELD, "Field '%s' was put twice in one %s (%lld elements, it has %lld)", put->field,
                             field->per_simulation ? "simulation" : "step", (long long)in_all, (long long)field->row);
    return MPIDATA_SUCCESS;
}

int mpidata_put_needs_start(const char *field, int ndim, const int64_t *start, const char **advice) {
    if (start || ndim == 0) return MPIDATA_SUCCESS;
    *advice = "Pass the index of the block's first element, or use mpidata_put.";
    return mpidata_error(MPIDATA_ERR_ARGUMENT, "mpidata_put_block of field '%.100s': start is NULL",
                         field ? field : "(no name)");
}

int mpidata_param_check(const mpidata_plan *plan, const char *name, int *index, const char **advice) {
    char names[512];
    *index = mpidata_plan_parameter(plan, name);
    if (*index >= 0) return MPIDATA_SUCCESS;
    mpidata_plan_parameter_names(plan, names, sizeof names);
    *advice = "Correct the name, or add it to parameters.space in the job file.";
    return mpidata_error(MPIDATA_ERR_PARAMETER, "Unknown parameter '%.100s'; the job declares %s", name, names);
}

int mpidata_param_copy(const mpidata_plan *plan, const double *values, const char *name, char *text, size_t size,
                       const char **advice) {
    int index = 0;
    if (plan) MPIDATA_TRY(mpidata_param_check(plan, name, &index, advice));
    const char *found = plan ? mpidata_plan_text(plan, index, values[index]) : mpidata_alone_text(name);
    *advice = "Call mpidata_param, or give its texts in parameters.space in the job file.";
    if (!found) return mpidata_error(MPIDATA_ERR_PARAMETER, "Parameter '%s' is a number", name);
    *advice = "Pass an array of MPIDATA_MAX_TEXT.";
    const size_t length = strlen(found);
    if (length >= size)
        return mpidata_error(MPIDATA_ERR_ARGUMENT, "Parameter '%.100s': its text needs %zu bytes, but there are %zu", name,
                             length + 1, size);
    memcpy(text, found, length + 1);
    return MPIDATA_SUCCESS;
}
