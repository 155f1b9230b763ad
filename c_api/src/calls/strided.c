#include "calls/strided.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static struct { char *memory; size_t bytes; } scratch;

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

/* Dimensions from the last one on whose elements lie side by side; *bytes: of such a run. */
static int inner_dimensions(const mpidata_put_arguments *put, const int64_t *strides, size_t *bytes) {
    int n = 0;
    *bytes = mpidata_dtype_size(put->dtype);
    for (int d = put->ndim - 1; d >= 0 && strides[d] == (int64_t)*bytes; d--, n++) *bytes *= (size_t)put->shape[d];
    return n;
}

/* Run by run, with a counter of the outer dimensions. */
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

const void *mpidata_gather_strided(const mpidata_put_arguments *put, const int64_t *strides) {
    size_t bytes = mpidata_dtype_size(put->dtype);
    for (int d = 0; d < put->ndim; d++) bytes *= (size_t)put->shape[d];
    if (bytes > scratch.bytes) {
        char *grown = realloc(scratch.memory, bytes);
        if (!grown) return NULL;
        scratch.memory = grown;
        scratch.bytes = bytes;
    }
    if (bytes) gather(put, strides, scratch.memory, scratch.memory + bytes);
    return scratch.memory ? scratch.memory : (const void *)"";
}

void mpidata_strided_close(void) {
    free(scratch.memory);
    scratch.memory = NULL;
    scratch.bytes = 0;
}
