#include "receive/incoming/received_constants.h"

#include <stdlib.h>
#include <string.h>

static void let_go_locked(mpidata_incoming *in, mpidata_source *source) {
    MPIDATA_LOCKED(&in->trainer->lock);
    mpidata_constants_release(&in->trainer->slots.constants, source->constants);
    source->constants = NULL;
}

void mpidata_let_go_of_constants(mpidata_incoming *in, mpidata_source *source) {
    if (!source->constants) return;
    mpidata_lock_take(&in->trainer->lock);
    let_go_locked(in, source);
    mpidata_lock_give(&in->trainer->lock);
}

void mpidata_end_constants_locked(mpidata_incoming *in) {
    MPIDATA_LOCKED(&in->trainer->lock);
    for (int i = 0; i < in->n_inlets; i++)
        for (int s = 0; s < in->inlets[i]->link.n_ranks * MPIDATA_STREAMS; s++) {
            mpidata_source *source = &in->inlets[i]->sources[s];
            source->lost = 1;
            source->assembly = NULL;
            let_go_locked(in, source);
        }
}

int mpidata_constants_check(const mpidata_source *source, const mpidata_piece *piece) {
    const mpidata_try_constants *constants = source->constants;
    if (constants && constants->simulation == piece->simulation &&
        constants->by_try == piece->by_try) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_WIRE, "A piece of simulation %lld, step %lld came before the constants of its try",
                         (long long)piece->simulation, (long long)piece->step);
}

/* The first rank of the group sends them. */
static int new_assembly_locked(mpidata_incoming *in, const mpidata_source *source, const mpidata_piece *piece,
                               mpidata_assembly **assembly) {
    MPIDATA_LOCKED(&in->trainer->lock);
    const mpidata_plan *plan = &in->trainer->job.plan;
    mpidata_constants_set *set = &in->trainer->slots.constants;
    mpidata_try_constants *constants = mpidata_constants_new(set, source->group, piece->by_try, piece->simulation);
    if (constants) /* as for validation: it is not a sample to be drawn */
        *assembly = mpidata_assembly_new(&in->assemblies, source->group, piece->by_try, piece->simulation, piece->step,
                                         -1, 1);
    if (!*assembly) {
        mpidata_constants_release(set, constants);
        return mpidata_error(MPIDATA_ERR_MEMORY,
                             "Out of memory: no room for the constants of simulation %lld. Lower buffer.capacity "
                                                 "in the job file", (long long)piece->simulation);
    }
    (*assembly)->constants = constants;
    (*assembly)->parts = &constants->parts;
    for (int f = 0; f < plan->n_fields; f++) {
        const mpidata_field *field = &plan->fields[f];
        (*assembly)->missing[f] = field->per_simulation && field->varying < 0 ? field->row : 0;
    }
    return MPIDATA_SUCCESS;
}

static int begin_locked(mpidata_incoming *in, mpidata_source *source, const mpidata_piece *piece,
                        mpidata_assembly **assembly) {
    MPIDATA_LOCKED(&in->trainer->lock);
    mpidata_constants_set *set = &in->trainer->slots.constants;
    const int cancelled = in->trainer->ledger.entries[piece->simulation].cancelled == MPIDATA_CANCEL_TOLD;
    if (source->lost || cancelled || mpidata_stopping(&in->trainer->phase)) return MPIDATA_SUCCESS;
    if (mpidata_constants_find(set, source->group, piece->by_try, piece->simulation)) {
        *assembly = mpidata_assembly_find(&in->assemblies, source->group, piece->by_try, piece->simulation,
                                          piece->step);
        if (!*assembly)
            return mpidata_error(MPIDATA_ERR_WIRE, "A rank has sent the constants of simulation %lld a second time",
                                 (long long)piece->simulation);
    } else {
        MPIDATA_TRY(new_assembly_locked(in, source, piece, assembly));
    }
    source->constants = mpidata_constants_keep((*assembly)->constants);
    in->trainer->statistics.bytes += piece->payload_bytes;
    return MPIDATA_SUCCESS;
}

int mpidata_constants_begin(mpidata_incoming *in, mpidata_source *source, const mpidata_piece *piece,
                            mpidata_assembly **assembly) {
    *assembly = NULL;
    if (source->group < 0 || source->validation != (piece->simulation >= in->trainer->job.plan.simulations))
        return mpidata_error(MPIDATA_ERR_WIRE, "Constants of simulation %lld came to the wrong place",
                             (long long)piece->simulation);
    mpidata_let_go_of_constants(in, source);
    mpidata_lock_take(&in->trainer->lock);
    const int status = begin_locked(in, source, piece, assembly);
    mpidata_lock_give(&in->trainer->lock);
    return status;
}

static void leave_out_locked(mpidata_incoming *in, const mpidata_assembly *assembly) {
    MPIDATA_LOCKED(&in->trainer->lock);
    const mpidata_plan *plan = &in->trainer->job.plan;
    for (int f = 0; f < plan->n_fields; f++) {
        const mpidata_field *field = &plan->fields[f];
        if (!field->per_simulation || field->given < 0 || field->varying >= 0) continue;
        assembly->parts->numbers[field->given] = !assembly->missing[f];
        if (assembly->missing[f]) mpidata_constants_leave_out(&in->trainer->slots.constants, assembly->constants, f);
    }
}

static int join_locked(mpidata_incoming *in, const mpidata_assembly *assembly) {
    MPIDATA_LOCKED(&in->trainer->lock);
    char text[MPIDATA_TEXT_MAX];
    leave_out_locked(in, assembly);
    const int status = mpidata_constants_join(&in->trainer->slots.constants, assembly->constants);
    if (!status) return MPIDATA_SUCCESS;
    memcpy(text, mpidata_last_error(), sizeof text);
    return mpidata_error(status,
                         "%.1500s. Solver group %d, simulation %lld, before its first step. Put each field with 'per: "
                                 "simulation' after mpidata_next; indices count along the joined parts of all ranks.",
                         text, assembly->group, (long long)assembly->simulation);
}

static int by_step(const void *one, const void *other) {
    const int64_t a = (*(mpidata_assembly *const *)one)->step, b = (*(mpidata_assembly *const *)other)->step;
    return (a > b) - (a < b);
}

/* *n steps with these constants, in order; NULL if memory is exhausted. */
static mpidata_assembly **waiting_for(const mpidata_assemblies *all, const mpidata_try_constants *constants,
                                      int64_t *n) {
    mpidata_assembly **list = malloc((size_t)(all->count + 1) * sizeof *list);
    *n = 0;
    for (int chain = 0; chain < MPIDATA_ASSEMBLY_CHAINS && list; chain++)
        for (mpidata_assembly *assembly = all->chains[chain]; assembly; assembly = assembly->next)
            if (assembly->constants == constants && assembly->slot >= 0 && !assembly->lost) list[(*n)++] = assembly;
    if (list) qsort(list, (size_t)*n, sizeof *list, by_step);
    return list;
}

int mpidata_constants_whole(mpidata_incoming *in, mpidata_assembly *assembly, mpidata_assembly ***waiting, int64_t *n) {
    mpidata_try_constants *constants = assembly->constants;
    *waiting = NULL;
    mpidata_lock_take(&in->trainer->lock);
    int status = join_locked(in, assembly);
    if (!status) {
        mpidata_assembly_free(&in->assemblies, assembly);
        *waiting = waiting_for(&in->assemblies, constants, n);
        mpidata_constants_release(&in->trainer->slots.constants, constants); /* the assembly's */
        if (!*waiting) status = mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory in the trainer's receive thread");
    }
    mpidata_lock_give(&in->trainer->lock);
    return status;
}
