/* Moments of values: how many, their mean, their spread, the least and the greatest. A solver makes those of each block that
 * it puts, one for each channel of the block; trainers merge them. Not thread-safe. */
#ifndef MPIDATA_MOMENTS_H
#define MPIDATA_MOMENTS_H

#include <stddef.h>
#include <stdint.h>

#include "plan_text/plan_text.h"

/* All are float64, as Python and MPI_Allgather take them: whole numbers up to 2^53. */
typedef struct {
    double count;           /* of finite values, not beyond 1e150 */
    double mean, m2;        /* of these; m2 is the sum of (value - mean)^2 */
    double least, greatest; /* of these; inf and -inf where there are none */
    double not_finite;      /* how many others */
} mpidata_moments;

enum { MPIDATA_MOMENTS_NUMBERS = sizeof(mpidata_moments) / sizeof(double) };

/* How many values are added at once; how many are one sum at most; and as many of a channel as need no gathering if they lie
 * side by side. */
enum { MPIDATA_MOMENTS_LANES = 16, MPIDATA_MOMENTS_LONGEST = 4096, MPIDATA_MOMENTS_GATHERED = 512 };

/* Make n of no values. */
void mpidata_moments_clear(mpidata_moments *moments, int64_t n);

/* Merge, one by one (T. F. Chan, G. H. Golub and R. J. LeVeque, "Algorithms for computing the sample variance", The
 * American Statistician 37, 1983). */
void mpidata_moments_merge(mpidata_moments *into, const mpidata_moments *from, int64_t n);

/* Those of contiguous values [outer, channels, inner], one for each channel; dtype is a mpidata_dtype that has moments. */
void mpidata_moments_of(unsigned dtype, const void *values, int64_t outer, int64_t channels, int64_t inner,
                        mpidata_moments *moments);

/* Those of contiguous values of a field, of this shape. */
void mpidata_moments_of_block(const mpidata_field *field, const int64_t *shape, const void *values,
                              mpidata_moments *moments);

/* Can these be the moments of so many values? */
int mpidata_moments_possible(const mpidata_moments *moments, int64_t values);

#endif
