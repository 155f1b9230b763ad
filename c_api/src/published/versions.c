#include "published/versions.h"

#include <stdlib.h>

#include "containers/array.h"

void mpidata_versions_open(mpidata_versions *versions, const mpidata_lock *lock) {
    *versions = (mpidata_versions){.lock = lock, .newest = -1};
}

void mpidata_versions_close(mpidata_versions *versions) {
    free(versions->description);
    free(versions->editions);
    mpidata_arena_close(&versions->arena);
    mpidata_versions_open(versions, versions->lock);
}

int64_t mpidata_versions_begin_locked(mpidata_versions *versions) {
    MPIDATA_LOCKED(versions->lock);
    int64_t edition = 0;
    while (edition < versions->n && (versions->editions[edition].readers || edition == versions->newest)) edition++;
    if (edition == versions->n) {
        if (!mpidata_array_reserve(&versions->editions, &versions->allocated, edition + 1, 4,
                                   sizeof *versions->editions))
            return -1;
        versions->editions[versions->n++] = (mpidata_edition){0};
    }
    versions->editions[edition].readers = 1;
    return edition;
}

mpidata_contents *mpidata_edition_memory(mpidata_versions *versions, mpidata_edition edition) {
    if (edition.contents) return edition.contents;
    return mpidata_arena_take(&versions->arena, (size_t)versions->description->bytes);
}

void mpidata_versions_end_locked(mpidata_versions *versions, int64_t edition, mpidata_contents *contents) {
    MPIDATA_LOCKED(versions->lock);
    versions->editions[edition] = (mpidata_edition){.contents = contents};
    versions->newest = edition;
}

int64_t mpidata_versions_read_locked(mpidata_versions *versions, int64_t than) {
    MPIDATA_LOCKED(versions->lock);
    const int64_t newest = versions->newest;
    if (newest < 0 || versions->editions[newest].contents->version <= than) return -1;
    versions->editions[newest].readers++;
    return newest;
}

void mpidata_versions_release_locked(mpidata_versions *versions, int64_t edition) {
    MPIDATA_LOCKED(versions->lock);
    versions->editions[edition].readers--;
}
