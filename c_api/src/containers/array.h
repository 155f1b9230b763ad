/* Arrays that grow. `array` is the address of the pointer to the elements, which are of `element` bytes each. Each call
 * returns whether there was memory; if not, the array is as it was. */
#ifndef MPIDATA_ARRAY_H
#define MPIDATA_ARRAY_H

#include <stddef.h>
#include <stdint.h>

/* How many elements to have room for, so that there is room for n: `at_first`, or at least the double of `room`. */
int64_t mpidata_array_room(int64_t room, int64_t n, int64_t at_first);

/* Have room for n elements. */
int mpidata_array_resize(void *array, int64_t n, size_t element);

/* Have room for n elements at least, of which *room are there. */
int mpidata_array_reserve(void *array, int64_t *room, int64_t n, int64_t at_first, size_t element);

#endif
