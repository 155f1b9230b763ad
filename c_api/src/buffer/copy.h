/* Copies to memory that is not read soon, or not by this core. */
#ifndef MPIDATA_COPY_H
#define MPIDATA_COPY_H

#include <stddef.h>
#include <stdint.h>

enum { MPIDATA_PAST_CACHE_WORTH = 1024 }; /* smallest size in bytes for which a copy past the cache differs from memcpy */
/* Bytes of the last level of cache, if the system does not report them. */
enum { MPIDATA_CACHE_UNKNOWN = 16 << 20 };

/* Whether memory of this size, written in one go, would push itself out of the last level of cache. */
int mpidata_exceeds_cache(size_t bytes);

/* memcpy that does not read the target's cache lines before it writes them; memcpy itself does so only for single copies that
 * exceed the cache. The written data is afterwards in memory, not in the cache. */
void *mpidata_copy_past_cache(void *restrict target, const void *restrict source, size_t bytes);

/* How to copy into memory that another core or the network adapter reads next. Large copies go past the cache. Smaller ones
 * are read up to 1.2 times as fast from this core's cache; but writing lines that another core has read takes 1 to 3 times as
 * long as past the cache if both cores share a cache, and 4 to 10 times if they do not. The system's information on shared
 * caches may be wrong in a virtual machine, whose cores may be exchanged. Therefore copies are timed in pairs, one each way,
 * and the majority of a round decides until the next round. */
typedef struct {
    uint64_t copies;
    double cached; /* s per byte through the cache, of the current pair */
    int slower;    /* pairs of the current round in which that took MPIDATA_COPY_SLOWER times as long */
    int past;      /* whether copies go past the cache */
} mpidata_copy_choice;

enum {
    MPIDATA_COPY_FIRST = 256,   /* copies before the first round, as memory was not read yet, or not even touched */
    MPIDATA_COPY_ROUND = 4096,  /* copies from one round to the next */
    MPIDATA_COPY_PAIRS = 15,    /* in a round */
    MPIDATA_COPY_SLOWER = 3,
    MPIDATA_COPY_LARGE = 256 << 10 /* bytes: a core's cache holds little of several such copies in flight */
};

/* memcpy into such memory. */
void *mpidata_copy_to_other(mpidata_copy_choice *choice, void *restrict target, const void *restrict source, size_t bytes);

/* The way of the next copy: 1 past the cache, else 0. *timed: whether its duration must be passed to mpidata_copy_took. */
int mpidata_copy_way(const mpidata_copy_choice *choice, int *timed);
void mpidata_copy_took(mpidata_copy_choice *choice, double seconds_per_byte);

#endif
