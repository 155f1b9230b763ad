/* Arrays that are not contiguous are gathered like in a copy element by element. */
#include "calls/values/strided.h"

#include <stdint.h>
#include <string.h>

#include "base/random.h"
#include "check.h"

enum { ROOM = 1 << 16, MOST = 4096 };

static char memory[ROOM];
static const char *advice;

static mpidata_put_arguments put_of(const void *values, mpidata_dtype dtype, int ndim, const int64_t *shape) {
    return (mpidata_put_arguments){.field = "u", .values = values, .dtype = dtype, .ndim = ndim, .shape = shape};
}

/* Element by element. */
static void expect(const mpidata_put_arguments *put, const int64_t *strides, int d, const char *from, char **to) {
    const size_t size = mpidata_dtype_size(put->dtype);
    if (d == put->ndim) {
        memcpy(*to, from, size);
        *to += size;
    }
    for (int64_t i = 0; d < put->ndim && i < put->shape[d]; i++) expect(put, strides, d + 1, from + i * strides[d], to);
}

static void any_array(mpidata_random *random) {
    static char wanted[MOST * 8];
    const mpidata_dtype dtype = mpidata_random_below(random, 2) ? MPIDATA_FLOAT64 : MPIDATA_UINT8;
    int64_t shape[MPIDATA_MAX_NDIM], strides[MPIDATA_MAX_NDIM], all = 1, low = 0, side_by_side = (int64_t)mpidata_dtype_size(dtype);
    const int ndim = (int)mpidata_random_below(random, 5);
    for (int d = ndim - 1; d >= 0; d--) {
        shape[d] = mpidata_random_below(random, 5);
        strides[d] = mpidata_random_below(random, 2) ? side_by_side : mpidata_random_below(random, 2000) - 1000;
        side_by_side = strides[d] > 0 ? strides[d] * (shape[d] ? shape[d] : 1) : side_by_side;
        if (strides[d] > 4000) strides[d] = 0;
        if (strides[d] < 0 && shape[d]) low += strides[d] * (shape[d] - 1);
        all *= shape[d];
    }
    mpidata_put_arguments put = put_of(memory + ROOM / 2, dtype, ndim, shape);
    char *end = wanted;
    CHECK(-low < ROOM / 2);
    CHECK(!mpidata_strides_check(&put, strides, &advice));
    expect(&put, strides, 0, put.values, &end);
    CHECK(!mpidata_gather_strided(&put, strides));
    CHECK(end - wanted == all * (int64_t)mpidata_dtype_size(dtype) && !memcmp(put.values, wanted, (size_t)(end - wanted)));
}

static void what_cannot_be_is_refused(void) {
    const int64_t shape[] = {3, 4}, none[] = {0, 4}, far[] = {INT64_MAX / 2, 8}, beyond[] = {INT64_MAX / 4, 8}, down[] = {-(INT64_MAX / 3), 1};
    const mpidata_put_arguments put = put_of(memory, MPIDATA_FLOAT64, 2, shape);
    mpidata_put_arguments nothing = put_of(NULL, MPIDATA_FLOAT64, 2, none);
    CHECK(mpidata_strides_check(&put, NULL, &advice) == MPIDATA_ERR_ARGUMENT && strstr(mpidata_last_error(), "strides is NULL"));
    CHECK(mpidata_strides_check(&put, far, &advice) == MPIDATA_ERR_ARGUMENT && strstr(mpidata_last_error(), "dimension 0 reaches beyond"));
    CHECK(!mpidata_strides_check(&put, beyond, &advice));
    CHECK(mpidata_strides_check(&put, down, &advice) == MPIDATA_ERR_ARGUMENT && strstr(mpidata_last_error(), "beyond all memory"));
    CHECK(!mpidata_strides_check(&nothing, far, &advice) && !mpidata_gather_strided(&nothing, far) && nothing.values);
}

int main(void) {
    mpidata_random random;
    mpidata_random_seed(&random, 7, 0);
    for (int i = 0; i < ROOM; i++) memory[i] = (char)mpidata_random_below(&random, 256);
    for (int i = 0; i < 20000; i++) any_array(&random);
    what_cannot_be_is_refused();
    mpidata_strided_close();
    return 0;
}
