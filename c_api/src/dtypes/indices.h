/* Values of index fields, which count along a length: whole numbers of 4 or 8 bytes. */
#ifndef MPIDATA_INDICES_H
#define MPIDATA_INDICES_H

#include <stddef.h>
#include <stdint.h>

/* Copy n indices of `size` bytes each, with `by` added. */
void mpidata_copy_indices(size_t size, void *restrict target, const void *restrict source, int64_t n, int64_t by);

/* Add `by` to n indices in place. */
void mpidata_shift_indices(size_t size, void *indices, int64_t n, int64_t by);

/* Replace each of n indices i, which are all in range, by new[i]. */
void mpidata_translate_indices(size_t size, void *indices, int64_t n, const int64_t *new);

/* The least and the greatest of n indices, n > 0. */
void mpidata_range_of_indices(size_t size, const void *indices, int64_t n, int64_t *least, int64_t *greatest);

#endif
