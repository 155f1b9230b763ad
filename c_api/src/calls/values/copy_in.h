/* What is put, copied into memory of the library: converted, and from a device's memory, where it is there. */
#ifndef MPIDATA_COPY_IN_H
#define MPIDATA_COPY_IN_H

#include "calls/put_check.h"

/* Copy as many elements as the field's own dtype has in `bytes`. past_cache: from so many bytes on, as another core or the network
 * adapter reads them next; 0: never. Errors: MPIDATA_ERR_DEVICE, MPIDATA_ERR_MEMORY. */
int mpidata_copy_in(void *target, const mpidata_put_arguments *put, mpidata_dtype to, size_t bytes, size_t past_cache);

#endif
