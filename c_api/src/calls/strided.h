/* Arrays that do not lie side by side: ghost cells, columns, a component of an array of structs. */
#ifndef MPIDATA_STRIDED_H
#define MPIDATA_STRIDED_H

#include "calls/put_check.h"

/* Whether all elements of an array with these strides, in bytes, can be in memory; nothing is read. The shape has been checked. */
int mpidata_strides_check(const mpidata_put_arguments *put, const int64_t *strides, const char **advice);

/* Gather them in C order into memory of the library's, which the next call uses again; NULL where it is short. */
const void *mpidata_gather_strided(const mpidata_put_arguments *put, const int64_t *strides);

/* Give that memory back. */
void mpidata_strided_close(void);

#endif
