/* Copies of a device's memory to the host. They go through page-locked memory in pieces, on a stream of the library that waits
 * for the program's stream. */
#ifndef MPIDATA_DEVICE_COPYING_H
#define MPIDATA_DEVICE_COPYING_H

#include "device/driver.h"

/* Pieces are a multiple of each dtype's size. */
enum { MPIDATA_DEVICE_PIECE = 4 << 20 };

/* Process a piece, now in the memory of the host, whose first byte was at `at`. */
typedef void mpidata_take_piece(void *taker, const void *piece, size_t at, size_t bytes);

/* Read bytes from `values`, and pass them to `take` piece by piece. Blocks, asleep, until all are read. Errors:
 * MPIDATA_ERR_DEVICE, MPIDATA_ERR_MEMORY. */
int mpidata_device_read(const mpidata_device_place *place, const void *values, size_t bytes, mpidata_take_piece *take, void *taker);

/* The same into given memory. */
int mpidata_device_copy(const mpidata_device_place *place, void *target, const void *values, size_t bytes);

/* Free the resources of all readers. */
void mpidata_device_close(void);

#endif
