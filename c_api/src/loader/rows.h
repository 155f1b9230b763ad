/* Rows of part files: the order of an epoch, and their way into a batch. No threads, no MPI, no state. */
#ifndef MPIDATA_ROWS_H
#define MPIDATA_ROWS_H

#include <stdint.h>

/* Permute 0 ... n-1 by VariablePhilox (Mitchell et al., "Bandwidth-optimal random shuffling for GPUs", 2022) over the
 * numbers of `bits` bits; results that are not below n are permuted again.
 *
 * @param[in] keys        array of uint32, shape (rounds,): a key for each round
 * @param[in] n           how many, at most 2^bits
 * @param[in] bits        2 ... 62
 * @param[in] backwards   not 0: the inverse
 * @param[in,out] values  array of uint64, shape (count,): each below n */
void mpidata_permute(const uint32_t *keys, int rounds, uint64_t n, int bits, int backwards, uint64_t *values,
                     int64_t count);

/* Copy rows to their places in a batch.
 *
 * @param[out] batch   memory of `length` rows of row_bytes each
 * @param[in] rows     contiguous rows, shape (count, row_bytes)
 * @param[in] places   array of uint32, shape (count,): the row of the batch
 * @return             0, or 1 if a place is not below `length`; that row and those after it are then not copied */
int mpidata_scatter(void *batch, int64_t length, const void *rows, int64_t row_bytes, const uint32_t *places,
                    int64_t count);

/* Copy rows with these numbers to contiguous memory.
 *
 * @param[out] rows    memory of `count` rows of row_bytes each
 * @param[in] from     `length` rows
 * @param[in] numbers  array of int64, shape (count,)
 * @return             0, or 1 if a number is not that of a row; that row and those after it are then not copied */
int mpidata_gather(void *rows, const void *from, int64_t length, int64_t row_bytes, const int64_t *numbers, int64_t count);

#endif
