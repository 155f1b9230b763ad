/* Entry points for Python, Fortran and mpidata.hpp, beside those of mpidata.h and mpidata_carried.h. */
#ifndef MPIDATA_BINDINGS_H
#define MPIDATA_BINDINGS_H

#include "mpidata.h"

/* As mpidata_fail, but the simulation may be tried again: the program that runs it has failed, not the simulation. */
int mpidata_fail_try(const char *reason);

/* Refuse a put because of an error that the caller's language has found: as with the library's own refusals, this ends the
 * job, and later calls fail. what: for example "Field 'u' has 2 dimensions", without a full stop; advice: a sentence. Returns
 * the status, an MPIDATA_ERR_, or MPIDATA_END if the job is stopping, MPIDATA_CANCELLED if the simulation is cancelled. */
int mpidata_misuse(int status, const char *what, const char *advice);

/* The map with these indices, which count from `base`, for mpidata_put_mapped and mpidata_put_indices. The library owns it, and
 * it is valid until the next such call: equal indices are recognized, so that they are not sent again. */
int mpidata_map_known(int64_t n, const int64_t *indices, int64_t base, mpidata_map **map);

/* As mpidata_put_mapped, or if as_indices is 1 as mpidata_put_indices, for an array with strides as in mpidata_put_strided. */
int mpidata_put_strided_rows(const char *field, const void *values, mpidata_dtype dtype, int ndim, const int64_t *shape,
                             const int64_t *strides, const mpidata_map *map, int as_indices);

/* As mpidata_published, for the array at this place, from 0, with its name; MPIDATA_END: there are no more. */
int mpidata_published_at(int64_t index, const char **name, mpidata_dtype *dtype, int *ndim, int64_t *shape, const void **values);

/* As mpidata_published, for an array with this dtype and number of dimensions; others are refused. MPIDATA_INT8 stands for
 * any dtype of one byte that is not a float. */
int mpidata_published_as(const char *name, mpidata_dtype dtype, int ndim, int64_t *shape, const void **values);

/* The mpidata_dtype that the job declares for a field; 0 outside a job, and if there is no such field. */
int mpidata_declared_dtype(const char *field);

#endif
