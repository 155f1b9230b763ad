/* Growing arrays. `array` is the address of the pointer to the elements, which have `element` bytes each. Each call returns
 * whether there was memory; if not, the array is unchanged. */
#ifndef MPIDATA_ARRAY_H
#define MPIDATA_ARRAY_H

#include <stddef.h>
#include <stdint.h>

/* Room, in elements, to allocate for n elements: `at_first`, or at least twice `room`. */
int64_t mpidata_array_room(int64_t room, int64_t n, int64_t at_first);

/* Make room for n elements. */
int mpidata_array_resize(void *array, int64_t n, size_t element);

/* Make room for at least n elements; *room: the present room. */
int mpidata_array_reserve(void *array, int64_t *room, int64_t n, int64_t at_first, size_t element);

#endif
