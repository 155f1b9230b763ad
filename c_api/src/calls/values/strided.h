/* Arrays that are not contiguous: ghost cells, columns, a component of an array of structs. */
#ifndef MPIDATA_STRIDED_H
#define MPIDATA_STRIDED_H

#include "calls/put_check.h"

/* Whether all elements of an array with these strides, in bytes, can be in memory; nothing is read. The shape has been checked. */
int mpidata_strides_check(const mpidata_put_arguments *put, const int64_t *strides, const char **advice);

/* Make put->values the elements in C order, in memory that the next call reuses and mpidata_strided_close frees. strides NULL:
 * they are in C order, in the memory of a device. Errors: MPIDATA_ERR_MEMORY, MPIDATA_ERR_DEVICE. */
int mpidata_gather_strided(mpidata_put_arguments *put, const int64_t *strides);

void mpidata_strided_close(void);

#endif
