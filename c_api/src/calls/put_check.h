/* Checks of a put before any of it is taken, with the same messages for a rank of the job and for a carried program. */
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
    mpidata_device_place device; /* where `values` are; without a driver: in the memory of the host */
    int64_t local;                /* by mpidata_put_indices: 1 + rows of the ranks before it that this process carries */
} mpidata_put_arguments;

/* Check a put; *block: the block that is put. plan: NULL outside a job, where only errors that are independent of the job are
 * refused. counts: those of this rank in the current step before the put. On an error *advice has the fix; callers add the
 * place and the full stop to the sentence. */
int mpidata_put_check(const mpidata_plan *plan, const mpidata_put_arguments *put, const int64_t *counts,
                      mpidata_block *block, const char **advice);

/* Check that a block has a start. */
int mpidata_put_needs_start(const char *field, int ndim, const int64_t *start, const char **advice);

/* Find the *index of a parameter. */
int mpidata_param_check(const mpidata_plan *plan, const char *name, int *index, const char **advice);

/* Copy the text of a parameter, given the `values` of all parameters. plan: NULL outside a job. */
int mpidata_param_copy(const mpidata_plan *plan, const double *values, const char *name, char *text, size_t size,
                       const char **advice);

#endif
