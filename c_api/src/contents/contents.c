#include "contents/contents.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/wire.h"

static const int64_t MOST_PUBLISHED_BYTES = INT64_MAX / 4, MOST_ARRAYS = (int64_t)1 << 20;

size_t mpidata_published_bytes(const mpidata_published_array *array) {
    size_t bytes = mpidata_dtype_size((unsigned)array->dtype);
    for (int i = 0; i < array->ndim; i++) bytes *= (size_t)array->shape[i];
    return bytes;
}

/* Whether its shape is valid, and its values fit after `at`, which is advanced. */
static int place(const mpidata_published_array *array, int64_t *at) {
    int64_t bytes = (int64_t)mpidata_dtype_size((unsigned)array->dtype);
    if (!bytes || array->ndim < 0 || array->ndim > MPIDATA_PLAN_NDIM) return 0;
    int empty = 0;
    for (int i = 0; i < array->ndim; i++) {
        const int64_t extent = array->shape[i];
        if (extent < 0 || (extent && bytes > MOST_PUBLISHED_BYTES / extent)) return 0;
        if (extent) bytes *= extent;
        empty |= !extent;
    }
    if (!empty && bytes > MOST_PUBLISHED_BYTES - *at) return 0;
    *at += empty ? 0 : (int64_t)mpidata_padded((size_t)bytes);
    return 1;
}

static int refuse_name(const char *name) {
    if (!*name) return mpidata_error(MPIDATA_ERR_ARGUMENT, "publish: the name of an array is empty. Give it one.");
    return mpidata_error(MPIDATA_ERR_ARGUMENT,
                         "publish: the name '%.200s' is longer than %d bytes. Give it a shorter one.", name,
                         MPIDATA_NAME_MAX - 1);
}

static int fill(mpidata_contents *contents, const char *const *names, const int32_t *dtypes, const int32_t *ndims,
                const int64_t *shapes) {
    mpidata_published_array *arrays = (mpidata_published_array *)(contents + 1);
    int64_t at = (int64_t)mpidata_padded(mpidata_description_bytes(contents->n));
    for (int64_t i = 0; i < contents->n; i++) {
        const size_t length = strlen(names[i]);
        if (!length || length >= sizeof arrays[i].name) return refuse_name(names[i]);
        memcpy(arrays[i].name, names[i], length);
        arrays[i].dtype = dtypes[i];
        arrays[i].ndim = ndims[i];
        if (ndims[i] < 0 || ndims[i] > MPIDATA_PLAN_NDIM)
            return mpidata_error(MPIDATA_ERR_ARGUMENT,
                                 "publish: '%s' has %d dimensions, at most %d are possible. Reshape it.",
                                 names[i], (int)ndims[i], MPIDATA_PLAN_NDIM);
        memcpy(arrays[i].shape, shapes + i * MPIDATA_PLAN_NDIM, (size_t)ndims[i] * sizeof *shapes);
        arrays[i].at = at;
        if (!place(&arrays[i], &at))
            return mpidata_error(MPIDATA_ERR_ARGUMENT, "publish: '%s' has a dtype or a shape that no field can have.",
                                 names[i]);
    }
    contents->bytes = at;
    return MPIDATA_SUCCESS;
}

int mpidata_contents_describe(int64_t n, const char *const *names, const int32_t *dtypes, const int32_t *ndims,
                              const int64_t *shapes, mpidata_contents **contents) {
    *contents = NULL;
    if (n < 1 || n > MOST_ARRAYS)
        return mpidata_error(MPIDATA_ERR_ARGUMENT, "publish: %lld arrays cannot be published. Name at least one.",
                             (long long)n);
    mpidata_contents *made = calloc(1, mpidata_description_bytes(n));
    if (!made) return mpidata_error(MPIDATA_ERR_MEMORY, "publish: out of memory for %lld arrays.", (long long)n);
    *made = (mpidata_contents){.magic = MPIDATA_CONTENTS_MAGIC, .n = n};
    const int status = fill(made, names, dtypes, ndims, shapes);
    if (status)
        free(made);
    else
        *contents = made;
    return status;
}

static void write_shape(const mpidata_published_array *array, char *text, size_t size) {
    int at = snprintf(text, size, "[");
    for (int i = 0; i < array->ndim; i++)
        at += snprintf(text + at, size - (size_t)at, "%s%lld", i ? ", " : "", (long long)array->shape[i]);
    (void)snprintf(text + at, size - (size_t)at, "]");
}

static int differs(const mpidata_published_array *first, const mpidata_published_array *other) {
    char was[256], is[256];
    write_shape(first, was, sizeof was);
    write_shape(other, is, sizeof is);
    return mpidata_error(MPIDATA_ERR_ARGUMENT,
                         "publish: '%s' is %s %s, but was %s %s in the first call. Names, dtypes and shapes "
                                               "stay the same.",
                         other->name, mpidata_dtype_name((unsigned)other->dtype), is,
                         mpidata_dtype_name((unsigned)first->dtype), was);
}

int mpidata_contents_alike(const mpidata_contents *first, const mpidata_contents *other) {
    const mpidata_published_array *before = mpidata_contents_arrays(first), *now = mpidata_contents_arrays(other);
    for (int64_t i = 0; i < first->n || i < other->n; i++) {
        const char *name = i < other->n ? now[i].name : before[i].name;
        const int there = mpidata_contents_find(first, name) != NULL;
        if (i >= other->n || i >= first->n || strcmp(before[i].name, name) != 0)
            return mpidata_error(MPIDATA_ERR_ARGUMENT,
                                 "publish: '%s' %s. Publish the same names in the same order in each call.", name,
                                 !there         ? "was not in the first call"
                                 : i < other->n ? "was in another place in the first call"
                                                : "was in the first call, and is missing");
        if (before[i].dtype != now[i].dtype || before[i].ndim != now[i].ndim ||
            memcmp(before[i].shape, now[i].shape, sizeof now[i].shape) != 0)
            return differs(&before[i], &now[i]);
    }
    return MPIDATA_SUCCESS;
}

int mpidata_contents_check(const void *memory, size_t bytes) {
    const mpidata_contents *contents = memory;
    if (bytes < sizeof *contents || contents->magic != MPIDATA_CONTENTS_MAGIC)
        return mpidata_error(MPIDATA_ERR_WIRE, "%zu bytes are not what a trainer has published", bytes);
    if (contents->version < 1 || contents->n < 1 || contents->n > MOST_ARRAYS ||
        bytes < mpidata_description_bytes(contents->n))
        return mpidata_error(MPIDATA_ERR_WIRE, "Version %lld of %lld published arrays has %zu bytes",
                             (long long)contents->version, (long long)contents->n, bytes);
    const mpidata_published_array *arrays = mpidata_contents_arrays(contents);
    int64_t at = (int64_t)mpidata_padded(mpidata_description_bytes(contents->n));
    for (int64_t i = 0; i < contents->n; i++) {
        const int named = *arrays[i].name && memchr(arrays[i].name, 0, sizeof arrays[i].name);
        if (!named || arrays[i].at != at || !place(&arrays[i], &at))
            return mpidata_error(MPIDATA_ERR_WIRE, "The description of the published array %lld is invalid", (long long)i);
    }
    const size_t whole = contents->described ? mpidata_description_bytes(contents->n) : (size_t)at;
    if (contents->bytes == at && bytes == whole) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_WIRE, "Published arrays have %zu bytes instead of %zu", bytes, whole);
}

const mpidata_published_array *mpidata_contents_find(const mpidata_contents *contents, const char *name) {
    const mpidata_published_array *arrays = mpidata_contents_arrays(contents);
    for (int64_t i = 0; i < contents->n; i++)
        if (strcmp(arrays[i].name, name) == 0) return &arrays[i];
    return NULL;
}

void mpidata_contents_names(const mpidata_contents *contents, char *text, size_t size) {
    const mpidata_published_array *arrays = mpidata_contents_arrays(contents);
    size_t at = 0;
    *text = '\0';
    for (int64_t i = 0; i < contents->n; i++) {
        if (size - at < sizeof arrays[i].name + 32) {
            (void)snprintf(text + at, size - at, " and %lld more", (long long)(contents->n - i));
            return;
        }
        at += (size_t)snprintf(text + at, size - at, "%s'%s'", !i ? "" : i + 1 < contents->n ? ", " : " and ",
                               arrays[i].name);
    }
}
