#include "device/locking.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "device/driver.h"

enum { TRIAL = 4096 };

static mpidata_device_place place;
static atomic_int told;

static int lock(void *memory, size_t bytes) {
    mpidata_before before;
    MPIDATA_TRY(mpidata_device_enter(&place, &before));
    const int code = place.driver->host_register(memory, bytes, MPIDATA_PORTABLE);
    mpidata_device_leave(&place, &before);
    return mpidata_driver_error(place.driver, code, "Page-locking memory of the buffer");
}

static void unlock_pages(void *memory) {
    mpidata_before before;
    if (mpidata_device_enter(&place, &before)) return; /* the driver was unloaded, which unlocks the memory */
    (void)place.driver->host_unregister(memory);
    mpidata_device_leave(&place, &before);
}

static int lock_pages(void *memory, size_t bytes) {
    if (!lock(memory, bytes)) return 1;
    if (!atomic_exchange(&told, 1)) (void)fprintf(stderr, "mpidata: %s. It is used without page-locking.\n", mpidata_last_error());
    return 0;
}

static const mpidata_arena_pages locking = {lock_pages, unlock_pages};

int mpidata_page_locking(int ordinal, const mpidata_arena_pages **pages) {
    void *memory = aligned_alloc(TRIAL, TRIAL);
    if (!memory) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the trainer");
    int status = mpidata_device_by_ordinal(ordinal, &place);
    if (!status) status = lock(memory, TRIAL);
    if (!status) unlock_pages(memory);
    free(memory);
    *pages = status ? NULL : &locking;
    return status;
}
