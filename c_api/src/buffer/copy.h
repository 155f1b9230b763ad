/* Copies that are not read soon, or not by this core. */
#ifndef MPIDATA_COPY_H
#define MPIDATA_COPY_H

#include <stddef.h>
#include <stdint.h>

enum { MPIDATA_PAST_CACHE_WORTH = 1024 }; /* bytes from which on a copy past the cache differs from memcpy */
/* Bytes of the last level of cache, where the system does not say. */
enum { MPIDATA_CACHE_UNKNOWN = 16 << 20 };

/* Whether memory of this size, written in one go, would push itself out of the last level of cache. */
int mpidata_exceeds_cache(size_t bytes);

/* memcpy that does not read the target's cache lines before it writes them, as memcpy itself does for single copies that
 * exceed the cache. What is written is in memory afterwards, and not in the cache. */
void *mpidata_copy_past_cache(void *restrict target, const void *restrict source, size_t bytes);

/* How to copy into memory that another core or the network adapter reads next. Large copies go past the cache. Smaller ones are read
 * up to 1.2 times as fast from this core's cache; but to write lines that another core has read takes 1 to 3 times as long as past the
 * cache where both cores share one, and 4 to 10 times where they do not. What the system says of shared caches may be wrong in a
 * virtual machine, and cores are exchanged beneath it. Therefore copies are timed in pairs, one each way, and the majority of a round
 * decides until the next one. */
typedef struct {
    uint64_t copies;
    double cached; /* s per byte through the cache, of the present pair */
    int slower;    /* pairs of the present round in which that took MPIDATA_COPY_SLOWER times as long */
    int past;      /* whether copies go past the cache */
} mpidata_copy_choice;

enum {
    MPIDATA_COPY_FIRST = 256,   /* copies before the first round: memory was not read yet, or not even touched */
    MPIDATA_COPY_ROUND = 4096,  /* copies from a round to the next */
    MPIDATA_COPY_PAIRS = 15,    /* in a round */
    MPIDATA_COPY_SLOWER = 3,
    MPIDATA_COPY_LARGE = 256 << 10 /* bytes: of several under way a core's cache holds little */
};

/* memcpy into such memory. */
void *mpidata_copy_to_other(mpidata_copy_choice *choice, void *restrict target, const void *restrict source, size_t bytes);

/* How the next copy goes: 1 past the cache, else 0. *timed: whether mpidata_copy_took must be told how long it took. */
int mpidata_copy_way(const mpidata_copy_choice *choice, int *timed);
void mpidata_copy_took(mpidata_copy_choice *choice, double seconds_per_byte);

#endif
