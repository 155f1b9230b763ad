/* Entry points for Python and Fortran, beside those of mpidata.h and mpidata_carried.h. */
#ifndef MPIDATA_BINDINGS_H
#define MPIDATA_BINDINGS_H

#include "mpidata.h"

/* As mpidata_fail, but the simulation may be tried again: what runs it has failed, not the simulation. */
int mpidata_fail_try(const char *reason);

/* Refuse a put with what the caller's language has found wrong with it: as the library's own refusals this ends the job, and
 * later calls fail. what: "Field 'u' has 2 dimensions", say, without a full stop; advice: a sentence. Returns the status, a
 * MPIDATA_ERR_, or MPIDATA_END where the job is stopping, MPIDATA_CANCELLED where the simulation is cancelled. */
int mpidata_misuse(int status, const char *what, const char *advice);

/* The map that has these indices, which count from `base`, for mpidata_put_mapped and mpidata_put_indices. It is the library's,
 * and good until the next such call: equal indices are known again, so that they need not be sent once more. */
int mpidata_map_known(int64_t n, const int64_t *indices, int64_t base, mpidata_map **map);

/* As mpidata_published, of the array at this place, from 0, with its name; MPIDATA_END: there are no more. */
int mpidata_published_at(int64_t index, const char **name, mpidata_dtype *dtype, int *ndim, int64_t *shape, const void **values);

/* As mpidata_published, of an array that has this dtype and so many dimensions; another one is refused. MPIDATA_INT8 is any of one
 * byte that is no float. */
int mpidata_published_as(const char *name, mpidata_dtype dtype, int ndim, int64_t *shape, const void **values);

/* The mpidata_dtype that the job declares for a field; 0 outside a job, and if there is no such field. */
int mpidata_declared_dtype(const char *field);

#endif
