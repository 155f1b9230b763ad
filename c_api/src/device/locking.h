/* Page-locked memory, which a device reads by itself: copies from it need not wait for a copy of the driver's own. */
#ifndef MPIDATA_LOCKING_H
#define MPIDATA_LOCKING_H

#include "base/arena.h"

/* What arenas are given to page-lock their memory for a device, by its number in this process; *pages is for good. Where memory
 * that is added later cannot be locked, standard error says so once, and it is used all the same. Errors: MPIDATA_ERR_DEVICE (no
 * driver is loaded, or it refuses). */
int mpidata_page_locking(int ordinal, const mpidata_arena_pages **pages);

#endif
