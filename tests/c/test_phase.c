/* The two sides of a trainer advance independently, and never go back. */
#include "stream/phase.h"

#include "check.h"

int main(void) {
    mpidata_lock lock;
    mpidata_phase phase = {.lock = &lock};
    CHECK(!mpidata_lock_open(&lock));
    mpidata_lock_take(&lock);
    CHECK(!mpidata_draws_ended(&phase) && !mpidata_stopping(&phase));
    mpidata_phase other = phase;
    mpidata_phase_end_draws_locked(&phase);
    CHECK(mpidata_draws_ended(&phase) && !mpidata_draws_told(&phase) && !mpidata_stopping(&phase));
    mpidata_phase_cut_short_locked(&phase); /* too late */
    mpidata_phase_cut_short_locked(&other);
    CHECK(!phase.cut_short && other.cut_short && mpidata_draws_ended(&other));
    mpidata_phase_stop_locked(&phase);
    CHECK(mpidata_stopping(&phase) && !mpidata_all_gone(&phase) && !mpidata_draws_told(&phase));
    CHECK(!phase.all_drawn);
    mpidata_phase_tell_end_locked(&phase);
    mpidata_phase_tell_end_locked(&other);
    CHECK(mpidata_draws_told(&phase) && !mpidata_draws_left(&phase));
    CHECK(phase.all_drawn && mpidata_draws_told(&other) && !other.all_drawn);
    mpidata_phase_end_draws_locked(&phase);
    CHECK(mpidata_draws_told(&phase));
    mpidata_phase_leave_locked(&phase);
    mpidata_phase_tell_end_locked(&phase);
    CHECK(mpidata_draws_left(&phase) && mpidata_draws_told(&phase) && mpidata_draws_ended(&phase));
    mpidata_phase closed = {.lock = &lock};
    mpidata_phase_leave_locked(&closed);
    mpidata_phase_tell_end_locked(&closed);
    CHECK(!closed.all_drawn);
    mpidata_phase_all_gone_locked(&phase);
    CHECK(mpidata_all_gone(&phase) && !mpidata_receive_done(&phase));
    mpidata_phase_done_locked(&phase);
    mpidata_phase_stop_locked(&phase);
    CHECK(mpidata_receive_done(&phase) && mpidata_all_gone(&phase) && mpidata_stopping(&phase));
    mpidata_lock_give(&lock);
    mpidata_lock_close(&lock);
    return 0;
}
