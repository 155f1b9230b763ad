#include "trainer/constants/drawn.h"

#include "containers/array.h"

void mpidata_drawn_with_nothing_locked(mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    for (int64_t i = 0; i < trainer->drawn_with.n; i++)
        mpidata_constants_release(&trainer->slots.constants, trainer->drawn_with.list[i]);
    trainer->drawn_with.n = 0;
}

int mpidata_drawn_with_locked(mpidata_trainer *trainer, mpidata_try_constants *constants) {
    MPIDATA_LOCKED(&trainer->lock);
    if (!constants || constants->batch == trainer->drawn) return MPIDATA_SUCCESS; /* they are already in the list */
    if (!mpidata_array_reserve(&trainer->drawn_with.list, &trainer->drawn_with.allocated, trainer->drawn_with.n + 1, 16,
                               sizeof *trainer->drawn_with.list))
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a batch.");
    constants->batch = trainer->drawn;
    trainer->drawn_with.list[trainer->drawn_with.n++] = mpidata_constants_keep(constants);
    return MPIDATA_SUCCESS;
}
