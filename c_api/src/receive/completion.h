/* Steps whose elements are all in place: they become samples, alone or in windows of several. Under the trainer's
 * lock. */
#ifndef MPIDATA_COMPLETION_H
#define MPIDATA_COMPLETION_H

#include "receive/assembly/assembly.h"
#include "stream/state.h"

/* Turn a step that no ledger has yet, in its own slot, into samples. */
int mpidata_enter_step_locked(mpidata_trainer *trainer, int group, int64_t by_try, int64_t slot, int validation);

/* The last element of a step has come. */
int mpidata_step_whole_locked(mpidata_trainer *trainer, mpidata_assemblies *assemblies, mpidata_assembly *assembly);

void mpidata_drop_assembly_locked(mpidata_trainer *trainer, mpidata_assemblies *assemblies, mpidata_assembly *assembly);

#endif
