/* What a put is checked for before any of it is taken: in the same words for a rank of the job and for a carried program. */
#ifndef MPIDATA_PUT_CHECK_H
#define MPIDATA_PUT_CHECK_H

#include "device/driver.h"
#include "wire/wire.h"

typedef struct {
    const char *field;
    const void *values;
    mpidata_dtype dtype;
    int ndim;
    const int64_t *shape, *start; /* start: NULL for a whole field */
    const mpidata_map *map;       /* of rows or local numbers; else NULL */
    int by_map;                   /* put by mpidata_put_mapped */
    mpidata_device_place device; /* where `values` are, without a driver: in the memory of the host */
    int64_t local;                /* by mpidata_put_indices: 1 and the rows of other ranks that this one carries, before it */
} mpidata_put_arguments;

/* Check; *block: what is put. plan: NULL outside a job, where only what is wrong in any job is refused. counts:
 * those of this rank in the present step before it. On an error *advice says what to do; the sentence has no place in it
 * and no full stop, callers add them. */
int mpidata_put_check(const mpidata_plan *plan, const mpidata_put_arguments *put, const int64_t *counts,
                      mpidata_block *block, const char **advice);

/* A block that is put must say where it begins. */
int mpidata_put_needs_start(const char *field, int ndim, const int64_t *start, const char **advice);

/* *index of a parameter. */
int mpidata_param_check(const mpidata_plan *plan, const char *name, int *index, const char **advice);

/* Copy the text of a parameter that has one of `values`, those of all. plan: NULL outside a job. */
int mpidata_param_copy(const mpidata_plan *plan, const double *values, const char *name, char *text, size_t size,
                       const char **advice);

#endif
