#include "containers/array.h"

#include <stdlib.h>
#include <string.h>

int64_t mpidata_array_room(int64_t room, int64_t n, int64_t at_first) {
    int64_t grown = room ? 2 * room : at_first;
    return grown < n ? n : grown;
}

int mpidata_array_resize(void *array, int64_t n, size_t element) {
    void *elements;
    if ((uint64_t)n > SIZE_MAX / element) return 0;
    memcpy(&elements, array, sizeof elements); /* a pointer of any type */
    elements = realloc(elements, (size_t)n * element);
    if (!elements) return 0;
    memcpy(array, &elements, sizeof elements);
    return 1;
}

int mpidata_array_reserve(void *array, int64_t *room, int64_t n, int64_t at_first, size_t element) {
    if (n <= *room) return 1;
    int64_t grown = mpidata_array_room(*room, n, at_first);
    if (!mpidata_array_resize(array, grown, element)) return 0;
    *room = grown;
    return 1;
}
