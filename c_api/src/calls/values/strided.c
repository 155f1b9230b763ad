#include "calls/values/strided.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "device/copying.h"

typedef struct { char *start; size_t bytes; } gathered;
static gathered scratch, span; /* the gathered elements; for a device, the span that they were gathered from */

int mpidata_strides_check(const mpidata_put_arguments *put, const int64_t *strides, const char **advice) {
    *advice = "Pass the bytes from one index to the next in each dimension, or use mpidata_put.";
    if (!strides && put->ndim > 0) return mpidata_error(MPIDATA_ERR_ARGUMENT, "Field '%.100s': strides is NULL", put->field);
    int64_t below = 0, above = (int64_t)mpidata_dtype_size(put->dtype); /* of the first element's address */
    for (int d = 0; d < put->ndim; d++)
        if (!put->shape[d]) return MPIDATA_SUCCESS; /* there are none */
    for (int d = 0; d < put->ndim; d++) {
        int64_t span, *bound = strides[d] < 0 ? &below : &above;
        const int far = __builtin_mul_overflow(put->shape[d] - 1, strides[d], &span) || __builtin_add_overflow(*bound, span, bound);
        if (far) return mpidata_error(MPIDATA_ERR_ARGUMENT, "Field '%.100s': stride %lld of dimension %d reaches beyond all memory",
                                      put->field, (long long)strides[d], d);
    }
    const uintptr_t first = (uintptr_t)put->values;
    if (first >= 0 - (uintptr_t)below && first <= UINTPTR_MAX - (uintptr_t)above) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_ARGUMENT, "Field '%.100s': the strides reach beyond all memory", put->field);
}

/* Number of last dimensions whose elements are contiguous; *bytes: of such a run. */
static int inner_dimensions(const mpidata_put_arguments *put, const int64_t *strides, size_t *bytes) {
    int n = 0;
    *bytes = mpidata_dtype_size(put->dtype);
    for (int d = put->ndim - 1; d >= 0 && strides[d] == (int64_t)*bytes; d--, n++) *bytes *= (size_t)put->shape[d];
    return n;
}

/* Copy run by run, with a counter of the outer dimensions. */
static void gather(const mpidata_put_arguments *put, const int64_t *strides, char *to, const char *end) {
    size_t run;
    const int outer = put->ndim - inner_dimensions(put, strides, &run);
    int64_t at[MPIDATA_MAX_NDIM] = {0};
    for (const char *from = put->values; to < end; to += run) {
        memcpy(to, from, run);
        for (int d = outer - 1; d >= 0; d--) {
            from += strides[d];
            if (++at[d] < put->shape[d]) break;
            from -= strides[d] * put->shape[d];
            at[d] = 0;
        }
    }
}

static int reserve(gathered *of, size_t bytes, const char *field) {
    if (bytes <= of->bytes) return MPIDATA_SUCCESS;
    char *grown = realloc(of->start, bytes);
    if (!grown) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for field '%.100s', which is gathered", field);
    of->start = grown;
    of->bytes = bytes;
    return MPIDATA_SUCCESS;
}

/* Fetch all bytes from the first to the last one, also those between the elements; put->values: the first element then. */
static int fetch_span(mpidata_put_arguments *put, const int64_t *strides) {
    int64_t below = 0, above = (int64_t)mpidata_dtype_size(put->dtype);
    for (int d = 0; d < put->ndim; d++) *(strides[d] < 0 ? &below : &above) += (put->shape[d] - 1) * strides[d];
    MPIDATA_TRY(reserve(&span, (size_t)(above - below), put->field));
    MPIDATA_TRY(mpidata_device_copy(&put->device, span.start, (const char *)put->values + below, (size_t)(above - below)));
    put->values = span.start - below;
    return MPIDATA_SUCCESS;
}

int mpidata_gather_strided(mpidata_put_arguments *put, const int64_t *strides) {
    size_t bytes = mpidata_dtype_size(put->dtype);
    for (int d = 0; d < put->ndim; d++) bytes *= (size_t)put->shape[d];
    MPIDATA_TRY(reserve(&scratch, bytes ? bytes : 1, put->field));
    if (bytes && !strides)
        MPIDATA_TRY(mpidata_device_copy(&put->device, scratch.start, put->values, bytes));
    else if (bytes) {
        if (put->device.driver) MPIDATA_TRY(fetch_span(put, strides));
        gather(put, strides, scratch.start, scratch.start + bytes);
    }
    put->values = scratch.start;
    put->device.driver = NULL;
    return MPIDATA_SUCCESS;
}

void mpidata_strided_close(void) {
    free(scratch.start);
    free(span.start);
    scratch = span = (gathered){.start = NULL};
}
