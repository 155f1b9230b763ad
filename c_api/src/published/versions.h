/* What this trainer has published: the newest version, and those that are still being sent. Memory is used again, and
 * nobody who publishes waits for a reader: where all of it is being read, there is more. Under the trainer's lock, but
 * for what says otherwise. */
#ifndef MPIDATA_VERSIONS_H
#define MPIDATA_VERSIONS_H

#include "base/arena.h"
#include "base/lock.h"
#include "contents/contents.h"

typedef struct {
    mpidata_contents *contents; /* NULL: it has no memory yet */
    int readers;                /* who sends it, or writes it */
} mpidata_edition;

typedef struct {
    const mpidata_lock *lock; /* the trainer's */
    mpidata_contents *description; /* of the first call; NULL: there was none */
    int64_t version;               /* of the last call */
    mpidata_edition *editions;
    int64_t n, allocated;
    int64_t newest;      /* which of these; -1: none */
    mpidata_arena arena; /* of who publishes alone */
} mpidata_versions;

void mpidata_versions_open(mpidata_versions *versions, const mpidata_lock *lock);
void mpidata_versions_close(mpidata_versions *versions);

/* Begin to write: one that nobody reads; -1: memory is short. It has one reader then. */
int64_t mpidata_versions_begin_locked(mpidata_versions *versions);

/* Not under the lock, one at a time: its memory, of description->bytes; NULL: it is short. */
mpidata_contents *mpidata_edition_memory(mpidata_versions *versions, mpidata_edition edition);

/* It is written: the newest one. */
void mpidata_versions_end_locked(mpidata_versions *versions, int64_t edition, mpidata_contents *contents);

/* Begin to read the newest one, if it is newer than this version; -1: there is none. */
int64_t mpidata_versions_read_locked(mpidata_versions *versions, int64_t than);
void mpidata_versions_release_locked(mpidata_versions *versions, int64_t edition);

#endif
