/* Page-locked memory, which a device reads directly: copies from it need no intermediate copy by the driver. */
#ifndef MPIDATA_LOCKING_H
#define MPIDATA_LOCKING_H

#include "base/arena.h"

/* The callbacks with which arenas page-lock their memory for a device, by its number in this process; *pages stays valid. If
 * memory that is added later cannot be locked, one notice is printed to stderr, and the memory is used nevertheless. Errors:
 * MPIDATA_ERR_DEVICE (no driver is loaded, or it refuses). */
int mpidata_page_locking(int ordinal, const mpidata_arena_pages **pages);

#endif
