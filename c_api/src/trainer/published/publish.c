#include "trainer/published/publish.h"

#include <stdlib.h>
#include <string.h>

#include "stream/state.h"

static int no_memory(void) {
    return mpidata_error(MPIDATA_ERR_MEMORY, "publish: out of memory for another version of the published arrays.");
}

/* The first description stays; later ones are compared with it. */
static int fix_description(mpidata_versions *versions, mpidata_contents *described) {
    if (!versions->description) {
        versions->description = described;
        return MPIDATA_SUCCESS;
    }
    const int status = mpidata_contents_alike(versions->description, described);
    free(described);
    return status;
}

/* Get memory for a version, with its description; *edition: its number. */
static int begin(mpidata_trainer *trainer, int64_t version, int64_t *edition, mpidata_contents **contents) {
    mpidata_versions *versions = &trainer->versions;
    mpidata_lock_take(&trainer->lock);
    *edition = mpidata_versions_begin_locked(versions);
    const mpidata_edition taken = *edition < 0 ? (mpidata_edition){0} : versions->editions[*edition];
    mpidata_lock_give(&trainer->lock);
    if (*edition < 0) return no_memory();
    *contents = mpidata_edition_memory(versions, taken);
    if (!*contents) {
        mpidata_lock_take(&trainer->lock);
        mpidata_versions_release_locked(versions, *edition);
        mpidata_lock_give(&trainer->lock);
        return no_memory();
    }
    memcpy(*contents, versions->description, mpidata_description_bytes(versions->description->n));
    (*contents)->version = version;
    (*contents)->described = 0;
    return MPIDATA_SUCCESS;
}

static void end(mpidata_trainer *trainer, int64_t edition, mpidata_contents *contents) {
    mpidata_lock_take(&trainer->lock);
    mpidata_versions_end_locked(&trainer->versions, edition, contents);
    mpidata_trainer_wake_locked(trainer);
    mpidata_lock_give(&trainer->lock);
}

static int copy(mpidata_trainer *trainer, int64_t version, const void *const *values) {
    int64_t edition;
    mpidata_contents *contents;
    MPIDATA_TRY(begin(trainer, version, &edition, &contents));
    const mpidata_published_array *arrays = mpidata_contents_arrays(contents);
    for (int64_t i = 0; i < contents->n; i++) {
        const size_t bytes = mpidata_published_bytes(&arrays[i]);
        if (bytes) memcpy((char *)contents + arrays[i].at, values[i], bytes);
    }
    end(trainer, edition, contents);
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_publish(int64_t n, const char *const *names, const int32_t *dtypes, const int32_t *ndims,
                            const int64_t *shapes, const void *const *values, int copies, int64_t *version) {
    mpidata_trainer *trainer;
    mpidata_contents *described;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    MPIDATA_TRY(mpidata_contents_describe(n, names, dtypes, ndims, shapes, &described));
    mpidata_versions *versions = &trainer->versions;
    MPIDATA_TRY(fix_description(versions, described));
    if (copies) MPIDATA_TRY(copy(trainer, versions->version + 1, values));
    *version = ++versions->version;
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_published(const void **contents, int64_t *bytes, int64_t *edition) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    mpidata_versions *versions = &trainer->versions;
    mpidata_lock_take(&trainer->lock);
    *edition = mpidata_versions_read_locked(versions, versions->version - 1);
    *contents = *edition < 0 ? versions->description : versions->editions[*edition].contents;
    mpidata_lock_give(&trainer->lock);
    *bytes = 0;
    if (!versions->version) return MPIDATA_SUCCESS;
    if (*edition < 0) {
        versions->description->described = 1;
        versions->description->version = versions->version;
    }
    const mpidata_contents *of = *contents;
    *bytes = *edition < 0 ? (int64_t)mpidata_description_bytes(of->n) : of->bytes;
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_published_release(int64_t edition) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    if (edition < 0) return MPIDATA_SUCCESS;
    mpidata_lock_take(&trainer->lock);
    mpidata_versions_release_locked(&trainer->versions, edition);
    mpidata_lock_give(&trainer->lock);
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_restore_published(const void *memory, int64_t bytes) {
    mpidata_trainer *trainer;
    const mpidata_contents *saved = memory;
    int64_t edition;
    mpidata_contents *contents;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    MPIDATA_TRY(mpidata_contents_check(memory, (size_t)bytes));
    const size_t described = mpidata_description_bytes(saved->n);
    mpidata_versions *versions = &trainer->versions;
    free(versions->description);
    if (!(versions->description = malloc(described))) return no_memory();
    memcpy(versions->description, memory, described);
    versions->description->described = 0;
    versions->version = saved->version;
    if (saved->described) return MPIDATA_SUCCESS;
    MPIDATA_TRY(begin(trainer, saved->version, &edition, &contents));
    memcpy(contents, memory, (size_t)bytes);
    end(trainer, edition, contents);
    return MPIDATA_SUCCESS;
}
