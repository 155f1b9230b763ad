/* Copies that are not read soon, or not by this core; or in another dtype; or of indices, which are of 4 or 8 bytes. */
#ifndef MPIDATA_COPY_H
#define MPIDATA_COPY_H

#include <stddef.h>
#include <stdint.h>

/* Whether memory of this size, written in one go, would push itself out of the last level of cache. */
int mpidata_exceeds_cache(size_t bytes);

/* memcpy that does not read the target's cache lines before it writes them, as memcpy itself does for single copies that
 * exceed the cache. What is written is in memory afterwards, and not in the cache. */
void *mpidata_copy_past_cache(void *restrict target, const void *restrict source, size_t bytes);

/* n float64 to float32, each rounded to the nearest: what is too great for it becomes infinite, what is too small 0. */
void mpidata_copy_as_float32(void *restrict target, const void *restrict source, int64_t n);

/* Copy n indices of so many bytes each, with `by` added. */
void mpidata_copy_indices(size_t size, void *restrict target, const void *restrict source, int64_t n, int64_t by);

/* The least and the greatest of n indices, n > 0. */
void mpidata_range_of_indices(size_t size, const void *indices, int64_t n, int64_t *least, int64_t *greatest);

#endif
