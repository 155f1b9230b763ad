/* The published versions of this trainer: the newest one, and those that are still being sent. Memory is reused, and
 * publishing never waits for a reader: if all of it is being read, more is allocated. Under the trainer's lock, unless
 * stated otherwise. */
#ifndef MPIDATA_VERSIONS_H
#define MPIDATA_VERSIONS_H

#include "base/arena.h"
#include "base/lock.h"
#include "contents/contents.h"

typedef struct {
    mpidata_contents *contents; /* NULL: it has no memory yet */
    int readers;                /* number of those that send or write it */
} mpidata_edition;

typedef struct {
    const mpidata_lock *lock; /* the trainer's */
    mpidata_contents *description; /* of the first call; NULL: there was none */
    int64_t version;               /* of the last call */
    mpidata_edition *editions;
    int64_t n, allocated;
    int64_t newest;      /* index of the newest one; -1: none */
    mpidata_arena arena; /* only for the publishing thread */
} mpidata_versions;

void mpidata_versions_open(mpidata_versions *versions, const mpidata_lock *lock);
void mpidata_versions_close(mpidata_versions *versions);

/* Start to write an edition that nobody reads; -1: memory is exhausted. It then has one reader. */
int64_t mpidata_versions_begin_locked(mpidata_versions *versions);

/* Not under the lock, one at a time: its memory, of description->bytes; NULL: memory is exhausted. */
mpidata_contents *mpidata_edition_memory(mpidata_versions *versions, mpidata_edition edition);

/* The edition is written, and is now the newest one. */
void mpidata_versions_end_locked(mpidata_versions *versions, int64_t edition, mpidata_contents *contents);

/* Start to read the newest one, if it is newer than this version; -1: there is none. */
int64_t mpidata_versions_read_locked(mpidata_versions *versions, int64_t than);
void mpidata_versions_release_locked(mpidata_versions *versions, int64_t edition);

#endif
