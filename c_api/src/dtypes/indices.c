#include "dtypes/indices.h"

#include "program/caller.h"

#define COPY_INDICES(type)                                               \
    const type *from = source;                                           \
    type *to = target;                                                   \
    for (int64_t i = 0; i < n; i++) to[i] = (type)((uint64_t)from[i] + (uint64_t)by);

MPIDATA_OUT_OF_LINE void mpidata_copy_indices(size_t size, void *restrict target, const void *restrict source, int64_t n, int64_t by) {
    if (size == sizeof(int32_t)) {
        COPY_INDICES(int32_t)
    } else {
        COPY_INDICES(int64_t)
    }
}

#define SHIFT_INDICES(type)                                               \
    type *all = indices;                                                 \
    for (int64_t i = 0; i < n; i++) all[i] = (type)((uint64_t)all[i] + (uint64_t)by);

MPIDATA_OUT_OF_LINE void mpidata_shift_indices(size_t size, void *indices, int64_t n, int64_t by) {
    if (size == sizeof(int32_t)) {
        SHIFT_INDICES(int32_t)
    } else {
        SHIFT_INDICES(int64_t)
    }
}

#define TRANSLATE_INDICES(type)                                          \
    type *all = indices;                                                 \
    for (int64_t i = 0; i < n; i++) all[i] = (type)new[all[i]];

MPIDATA_OUT_OF_LINE void mpidata_translate_indices(size_t size, void *indices, int64_t n, const int64_t *new) {
    if (size == sizeof(int32_t)) {
        TRANSLATE_INDICES(int32_t)
    } else {
        TRANSLATE_INDICES(int64_t)
    }
}

#define RANGE(type)                                   \
    const type *from = indices;                       \
    type low = from[0], high = from[0];               \
    for (int64_t i = 1; i < n; i++) {                 \
        low = from[i] < low ? from[i] : low;          \
        high = from[i] > high ? from[i] : high;       \
    }                                                 \
    *least = low;                                     \
    *greatest = high;

MPIDATA_OUT_OF_LINE void mpidata_range_of_indices(size_t size, const void *indices, int64_t n, int64_t *least, int64_t *greatest) {
    if (size == sizeof(int32_t)) {
        RANGE(int32_t)
    } else {
        RANGE(int64_t)
    }
}
