#include "calls/values/copy_in.h"

#include <string.h>

#include "base/status.h"
#include "device/copying.h"
#include "dtypes/convert.h"

typedef struct {
    char *target;
    size_t from_size, to_size; /* of an element */
    mpidata_convert *convert;
    mpidata_copy_choice *to_other;
} copying;

static void copy_piece(void *context, const void *values, size_t at, size_t bytes) {
    const copying *how = context;
    char *target = how->target + at / how->from_size * how->to_size;
    if (how->convert)
        how->convert(target, values, (int64_t)(bytes / how->from_size));
    else if (how->to_other)
        (void)mpidata_copy_to_other(how->to_other, target, values, bytes);
    else
        memcpy(target, values, bytes);
}

int mpidata_copy_in(void *target, const mpidata_put_arguments *put, mpidata_dtype to, size_t bytes,
                    mpidata_copy_choice *to_other) {
    copying how = {.target = target, .from_size = mpidata_dtype_size(put->dtype), .to_size = mpidata_dtype_size(to),
                   .convert = mpidata_conversion(put->dtype, to), .to_other = to_other};
    const size_t of_put = bytes / how.to_size * how.from_size;
    if (!bytes) return MPIDATA_SUCCESS;
    if (put->device.driver) return mpidata_device_read(&put->device, put->values, of_put, copy_piece, &how);
    copy_piece(&how, put->values, 0, of_put);
    return MPIDATA_SUCCESS;
}
