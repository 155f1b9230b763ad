/* Copies of put values into memory of the library: converted, and from a device's memory if they are there. */
#ifndef MPIDATA_COPY_IN_H
#define MPIDATA_COPY_IN_H

#include "buffer/copy.h"
#include "calls/put_check.h"

/* Copy as many elements as fit into `bytes` with the field's own dtype. to_other: how to copy if another core or the network
 * adapter reads them next; NULL: this core does. Errors: MPIDATA_ERR_DEVICE, MPIDATA_ERR_MEMORY. */
int mpidata_copy_in(void *target, const mpidata_put_arguments *put, mpidata_dtype to, size_t bytes, mpidata_copy_choice *to_other);

#endif
