#include "receive/incoming/deaths.h"

#include "receive/incoming/received_constants.h"
#include "receive/incoming/inlets.h"
#include "receive/completion.h"

/* The scheduler handles the death of a solver or trainer; the scheduler's own death must end this rank. */
int mpidata_incoming_note_deaths(mpidata_inlet *inlet) {
    MPIDATA_TRY(mpidata_link_deaths(&inlet->link));
    return inlet->link.dead[0] ? mpidata_error(MPIDATA_ERR_DIED, "The scheduler has died.") : MPIDATA_SUCCESS;
}

/* Drop incomplete samples: of a group, -1: of any, and of a simulation, -1: of any. */
static void drop_assemblies_locked(mpidata_incoming *in, int group, int64_t simulation) {
    MPIDATA_LOCKED(&in->trainer->lock);
    for (int chain = 0; chain < MPIDATA_ASSEMBLY_CHAINS; chain++)
        for (mpidata_assembly *assembly = in->assemblies.chains[chain], *next; assembly; assembly = next) {
            next = assembly->next;
            if ((group >= 0 && assembly->group != group) || (simulation >= 0 && assembly->simulation != simulation)) continue;
            if (assembly->lost) continue;
            assembly->lost = 1;
            in->assemblies.lost++;
            if (!assembly->under_way) mpidata_drop_assembly_locked(in->trainer, &in->assemblies, assembly);
        }
}

static void drop_group(mpidata_incoming *in, mpidata_inlet *inlet, int group) {
    for (int i = 0; i < inlet->link.n_ranks * MPIDATA_STREAMS; i++) {
        if (inlet->sources[i].group != group) continue;
        inlet->sources[i].lost = 1;
        inlet->sources[i].drained = 0;
        mpidata_let_go_of_constants(in, &inlet->sources[i]);
        inlet->sources[i].assembly = NULL;
        mpidata_kept_clear(&inlet->sources[i].maps);
    }
    mpidata_lock_take(&in->trainer->lock);
    drop_assemblies_locked(in, group, -1);
    if (in->trainer->windows.plan) mpidata_windows_drop_group(&in->trainer->windows, group);
    mpidata_lock_give(&in->trainer->lock);
}

int mpidata_incoming_lose(mpidata_incoming *in, int role, int number) {
    mpidata_inlet *inlet = mpidata_inlet_of(in, role, number);
    if (!inlet) return MPIDATA_SUCCESS;
    inlet->lost = inlet != in->inlets[0];
    if (role == MPIDATA_ROLE_SOLVER) drop_group(in, inlet, number);
    return MPIDATA_SUCCESS;
}

/* Forget each rank's announced blocks, and the constants it has sent last, if they belong to this simulation. */
static void forget_in(mpidata_incoming *in, mpidata_inlet *inlet, int64_t simulation) {
    for (int i = 0; i < inlet->link.n_ranks * MPIDATA_STREAMS; i++) {
        mpidata_source *source = &inlet->sources[i];
        if (source->assembly && source->assembly->simulation == simulation) source->assembly = NULL;
        if (source->constants && source->constants->simulation == simulation) mpidata_let_go_of_constants(in, source);
    }
}

static void drain(mpidata_incoming *in, int group, int drained) {
    mpidata_inlet *inlet = group < 0 ? NULL : mpidata_inlet_of(in, MPIDATA_ROLE_SOLVER, group);
    for (int i = 0; inlet && i < inlet->link.n_ranks * MPIDATA_STREAMS; i++) {
        mpidata_source *source = &inlet->sources[i];
        if (source->group == group && !source->validation) source->drained = drained;
    }
    in->drains = 0;
    for (int n = 0; n < in->n_inlets; n++)
        for (int i = 0; i < in->inlets[n]->link.n_ranks * MPIDATA_STREAMS; i++) in->drains |= in->inlets[n]->sources[i].drained;
}

int mpidata_incoming_cancel(mpidata_incoming *in, int64_t simulation, int group, int closed) {
    mpidata_trainer *trainer = in->trainer;
    drain(in, group, !closed);
    for (int i = 0; i < in->n_inlets; i++) forget_in(in, in->inlets[i], simulation);
    mpidata_lock_take(&trainer->lock);
    const int news = trainer->ledger.entries[simulation].cancelled != MPIDATA_CANCEL_TOLD;
    trainer->ledger.entries[simulation].cancelled = MPIDATA_CANCEL_TOLD;
    drop_assemblies_locked(in, -1, simulation);
    if (trainer->windows.plan) mpidata_windows_drop_tries(&trainer->windows, simulation, INT64_MAX);
    const int status = news ? mpidata_journal_cancel(&trainer->journal, simulation) : MPIDATA_SUCCESS;
    mpidata_lock_give(&trainer->lock);
    return status;
}

void mpidata_incoming_gone(mpidata_incoming *in, int role, int number) {
    mpidata_inlet *inlet = mpidata_inlet_of(in, role, number);
    if (inlet && inlet != in->inlets[0]) inlet->gone = 1;
}

/* If nothing at all is in flight, neither is anything with a group that has left or is lost. The communicator of a lost one is
 * left to MPI: freeing it may wait for dead ranks. */
int mpidata_free_gone(mpidata_incoming *in) {
    if (mpidata_incoming_busy(in)) return MPIDATA_SUCCESS;
    for (int i = in->n_inlets - 1; i > 0; i--) {
        mpidata_inlet *inlet = in->inlets[i];
        if (!inlet->gone && !inlet->lost) continue;
        in->inlets[i] = in->inlets[--in->n_inlets];
        MPI_Comm comm = inlet->link.comm;
        const int lost = inlet->lost;
        mpidata_inlet_close(in, inlet);
        if (!lost) MPIDATA_TRY_MPI(MPI_Comm_free(&comm));
    }
    return MPIDATA_SUCCESS;
}
