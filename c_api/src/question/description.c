#include "question/description.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t MOST_BYTES = (int64_t)1 << 60;

static int check_shape(const mpidata_array *array, int64_t rows, const char **advice) {
    int64_t bytes = (int64_t)mpidata_dtype_size((unsigned)array->dtype);
    *advice = "Give 'ndim' extents; the first one is the number of rows.";
    if (array->ndim < 1 || array->ndim > MPIDATA_MAX_NDIM || !array->shape)
        return mpidata_error(MPIDATA_ERR_SHAPE, "Array '%s' of a question has %d dimensions, not 1 to %d", array->name,
                             array->ndim, MPIDATA_MAX_NDIM);
    for (int d = 0; d < array->ndim; d++)
        if (array->shape[d] < 0)
            return mpidata_error(MPIDATA_ERR_SHAPE, "Array '%s' of a question has extent %lld in dimension %d",
                                 array->name, (long long)array->shape[d], d);
    for (int d = 0; d < array->ndim; d++) {
        if (array->shape[d] && bytes > MOST_BYTES / array->shape[d])
            return mpidata_error(MPIDATA_ERR_SHAPE, "Array '%s' of a question is larger than any memory", array->name);
        bytes *= array->shape[d];
    }
    *advice = "All arrays of a question, in and out, must have the same number of rows.";
    if (array->shape[0] != rows)
        return mpidata_error(MPIDATA_ERR_SHAPE, "Array '%s' of a question has %lld rows, the first one has %lld",
                             array->name, (long long)array->shape[0], (long long)rows);
    *advice = "Give the address of the array.";
    return array->values || !bytes ? MPIDATA_SUCCESS
                                   : mpidata_error(MPIDATA_ERR_ARGUMENT, "Array '%s' of a question is NULL",
                                                   array->name);
}

static int check_name(const mpidata_array *arrays, int i, const char **advice) {
    const char *name = arrays[i].name;
    *advice = "Give each array the name by which the function knows it.";
    if (!name || !*name || strlen(name) >= MPIDATA_NAME_MAX)
        return mpidata_error(MPIDATA_ERR_ARGUMENT,
                             "Array %d of a question has no name, or one of more than %d characters", i,
                             MPIDATA_NAME_MAX - 1);
    for (int before = 0; before < i; before++)
        if (!strcmp(arrays[before].name, name))
            return mpidata_error(MPIDATA_ERR_ARGUMENT, "Two arrays of a question have the name '%s'", name);
    *advice = "Use a dtype of mpidata.h.";
    if (mpidata_dtype_size((unsigned)arrays[i].dtype)) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_DTYPE, "Array '%s' of a question has dtype %d, which does not exist", name,
                         (int)arrays[i].dtype);
}

static int check_arrays(const mpidata_array *arrays, int n, int64_t rows, const char **advice) {
    for (int i = 0; i < n; i++) {
        MPIDATA_TRY(check_name(arrays, i, advice));
        MPIDATA_TRY(check_shape(&arrays[i], rows, advice));
    }
    return MPIDATA_SUCCESS;
}

int mpidata_question_check(const mpidata_array *in, int n_in, const mpidata_array *out, int n_out,
                           const char **advice) {
    *advice = "Give at least one array in and one out.";
    if (!in || !out || n_in < 1 || n_out < 1 || n_in > MPIDATA_ARRAYS_MAX || n_out > MPIDATA_ARRAYS_MAX)
        return mpidata_error(MPIDATA_ERR_ARGUMENT, "A question has %d arrays in and %d out, not 1 to %d each", n_in,
                             n_out, MPIDATA_ARRAYS_MAX);
    const int64_t rows = in[0].shape && in[0].ndim > 0 ? in[0].shape[0] : 0;
    MPIDATA_TRY(check_arrays(in, n_in, rows, advice));
    return check_arrays(out, n_out, rows, advice);
}

size_t mpidata_array_bytes(const mpidata_array *array) {
    size_t bytes = mpidata_dtype_size((unsigned)array->dtype);
    for (int d = 0; d < array->ndim; d++) bytes *= (size_t)array->shape[d];
    return bytes;
}

static void describe_one(const mpidata_array *array, mpidata_described *described) {
    (void)snprintf(described->name, sizeof described->name, "%s", array->name);
    described->dtype = (int32_t)array->dtype;
    described->ndim = array->ndim;
    memcpy(described->shape, array->shape, (size_t)array->ndim * sizeof *array->shape);
}

mpidata_description *mpidata_describe(const mpidata_array *in, int n_in, const mpidata_array *out, int n_out,
                                      size_t *bytes) {
    *bytes = sizeof(mpidata_description) + (size_t)(n_in + n_out) * sizeof(mpidata_described);
    mpidata_description *made = calloc(1, *bytes);
    if (!made) return NULL;
    *made = (mpidata_description){.magic = MPIDATA_QUESTION_MAGIC, .n_in = n_in, .n_out = n_out,
                                  .rows = in[0].shape[0]};
    mpidata_described *described = (mpidata_described *)(made + 1);
    for (int i = 0; i < n_in; i++) describe_one(&in[i], described++);
    for (int i = 0; i < n_out; i++) describe_one(&out[i], described++);
    return made;
}
