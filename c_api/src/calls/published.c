/* Reading of published arrays by solvers: mpidata_refresh, mpidata_published. */
#include <string.h>

#include "calls/bindings.h"
#include "calls/calls.h"
#include "program/caller.h"
#include "contents/contents.h"

static const char PUBLISH_IT[] = "Name one of those, or publish it: mpidata.publish on the trainers.";

static int refresh(int64_t *version) {
    MPIDATA_TRY(mpidata_calls_enter("mpidata_refresh"));
    if (!version) {
        (void)mpidata_error(MPIDATA_ERR_ARGUMENT, "mpidata_refresh: version is NULL");
        return mpidata_calls_misuse(MPIDATA_ERR_ARGUMENT, "Pass the address of an int64_t.");
    }
    *version = 0;
    if (mpidata_calls.stopping) return MPIDATA_END;
    if (mpidata_calls.alone) return MPIDATA_SUCCESS;
    MPIDATA_TRY(mpidata_calls_transport()->refresh());
    const mpidata_contents *held = mpidata_calls_transport()->published();
    if (held) *version = held->version;
    return MPIDATA_SUCCESS;
}

int mpidata_refresh(int64_t *version) {
    MPIDATA_CALLED;
    return mpidata_calls_settle(refresh(version));
}

static const mpidata_contents *held(void) {
    return mpidata_calls.alone ? NULL : mpidata_calls_transport()->published();
}

static int nothing_yet(void) {
    return mpidata_error(MPIDATA_ERR_AGAIN, "Nothing has been published yet, as of the last mpidata_refresh.");
}

static void give(const mpidata_contents *contents, const mpidata_published_array *array, mpidata_dtype *dtype,
                 int *ndim, int64_t *shape, const void **values) {
    *dtype = (mpidata_dtype)array->dtype;
    *ndim = array->ndim;
    memcpy(shape, array->shape, (size_t)array->ndim * sizeof *shape);
    *values = (const char *)contents + array->at;
}

static int published(const char *name, mpidata_dtype *dtype, int *ndim, int64_t *shape, const void **values) {
    char names[1024];
    MPIDATA_TRY(mpidata_calls_enter("mpidata_published"));
    if (!name || !dtype || !ndim || !shape || !values) {
        (void)mpidata_error(MPIDATA_ERR_ARGUMENT, "mpidata_published: a pointer is NULL");
        return mpidata_calls_misuse(MPIDATA_ERR_ARGUMENT, "Pass a name, and the addresses of all results.");
    }
    const mpidata_contents *contents = held();
    if (!contents) return nothing_yet();
    const mpidata_published_array *array = mpidata_contents_find(contents, name);
    if (!array) {
        mpidata_contents_names(contents, names, sizeof names);
        (void)mpidata_error(MPIDATA_ERR_ARGUMENT, "mpidata_published: '%.100s' has not been published, but %s", name,
                            names);
        return mpidata_calls_misuse(MPIDATA_ERR_ARGUMENT, PUBLISH_IT);
    }
    give(contents, array, dtype, ndim, shape, values);
    return MPIDATA_SUCCESS;
}

int mpidata_published(const char *name, mpidata_dtype *dtype, int *ndim, int64_t *shape, const void **values) {
    MPIDATA_CALLED;
    return mpidata_calls_settle(published(name, dtype, ndim, shape, values));
}

static int published_as(const char *name, mpidata_dtype dtype, int ndim, int64_t *shape, const void **values) {
    mpidata_dtype is;
    int dimensions;
    MPIDATA_TRY(published(name, &is, &dimensions, shape, values));
    const int byte = dtype == MPIDATA_INT8 && mpidata_dtype_size(is) == 1;
    if ((is == dtype || byte) && dimensions == ndim) return MPIDATA_SUCCESS;
    (void)mpidata_error(MPIDATA_ERR_ARGUMENT,
                        "mpidata_published: '%.100s' is %s of %d dimensions, but was requested as %s of %d", name,
                        mpidata_dtype_name(is), dimensions, mpidata_dtype_name(dtype), ndim);
    return mpidata_calls_misuse(MPIDATA_ERR_ARGUMENT, "Declare the pointer as the published array.");
}

int mpidata_published_as(const char *name, mpidata_dtype dtype, int ndim, int64_t *shape, const void **values) {
    MPIDATA_CALLED;
    return mpidata_calls_settle(published_as(name, dtype, ndim, shape, values));
}

int mpidata_published_at(int64_t index, const char **name, mpidata_dtype *dtype, int *ndim, int64_t *shape,
                         const void **values) {
    MPIDATA_CALLED;
    MPIDATA_TRY(mpidata_calls_enter("mpidata_published"));
    const mpidata_contents *contents = held();
    if (!contents) return nothing_yet();
    if (index < 0 || index >= contents->n) return MPIDATA_END;
    const mpidata_published_array *array = &mpidata_contents_arrays(contents)[index];
    *name = array->name;
    give(contents, array, dtype, ndim, shape, values);
    return MPIDATA_SUCCESS;
}
