#include "stream/phase.h"

static void draws_locked(mpidata_phase *phase, mpidata_draws next) {
    MPIDATA_LOCKED(phase->lock);
    if (phase->draws < next) phase->draws = next;
}

static void intake_locked(mpidata_phase *phase, mpidata_intake next) {
    MPIDATA_LOCKED(phase->lock);
    if (phase->intake < next) phase->intake = next;
}

void mpidata_phase_end_draws_locked(mpidata_phase *phase) { draws_locked(phase, MPIDATA_DRAWS_ENDED); }
void mpidata_phase_tell_end_locked(mpidata_phase *phase) { draws_locked(phase, MPIDATA_DRAWS_TOLD); }
void mpidata_phase_leave_locked(mpidata_phase *phase) { draws_locked(phase, MPIDATA_DRAWS_LEFT); }

void mpidata_phase_stop_locked(mpidata_phase *phase) { intake_locked(phase, MPIDATA_INTAKE_DROPS); }
void mpidata_phase_all_gone_locked(mpidata_phase *phase) { intake_locked(phase, MPIDATA_INTAKE_GONE); }
void mpidata_phase_done_locked(mpidata_phase *phase) { intake_locked(phase, MPIDATA_INTAKE_DONE); }
