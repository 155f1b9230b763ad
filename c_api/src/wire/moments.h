/* Moments of values: their number, mean, spread, least and greatest. A solver computes those of each block that it puts, one
 * for each channel of the block; trainers merge them. Not thread-safe. */
#ifndef MPIDATA_MOMENTS_H
#define MPIDATA_MOMENTS_H

#include <stddef.h>
#include <stdint.h>

#include "plan_text/plan_text.h"

/* All are float64, as Python and MPI_Allgather take them: whole numbers up to 2^53. */
typedef struct {
    double count;           /* of finite values, not beyond 1e150 */
    double mean, m2;        /* of these; m2 is the sum of (value - mean)^2 */
    double least, greatest; /* of these; inf and -inf if there are none */
    double not_finite;      /* number of other values */
} mpidata_moments;

enum { MPIDATA_MOMENTS_NUMBERS = sizeof(mpidata_moments) / sizeof(double) };

/* Values that are added at once; most values of one sum; contiguous values of a channel from which on they need no
 * gathering. */
enum { MPIDATA_MOMENTS_LANES = 16, MPIDATA_MOMENTS_LONGEST = 4096, MPIDATA_MOMENTS_GATHERED = 512 };

/* Clear n moments. */
void mpidata_moments_clear(mpidata_moments *moments, int64_t n);

/* Merge, one by one (T. F. Chan, G. H. Golub and R. J. LeVeque, "Algorithms for computing the sample variance", The
 * American Statistician 37, 1983). */
void mpidata_moments_merge(mpidata_moments *into, const mpidata_moments *from, int64_t n);

/* Compute those of contiguous values [outer, channels, inner], one for each channel; dtype is a mpidata_dtype with moments. */
void mpidata_moments_of(unsigned dtype, const void *values, int64_t outer, int64_t channels, int64_t inner,
                        mpidata_moments *moments);

/* Compute those of contiguous values of a field, of this shape. */
void mpidata_moments_of_block(const mpidata_field *field, const int64_t *shape, const void *values,
                              mpidata_moments *moments);

/* Whether these can be the moments of this number of values. */
int mpidata_moments_possible(const mpidata_moments *moments, int64_t values);

#endif
