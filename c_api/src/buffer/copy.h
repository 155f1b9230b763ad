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

#endif
