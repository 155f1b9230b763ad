#include "receive/incoming/pieces.h"

#include <stdlib.h>
#include <string.h>

#include "containers/array.h"
#include "receive/incoming/mapped.h"
#include "receive/incoming/received_constants.h"
#include "receive/completion.h"
#include "stream/progress.h"

/* Optional fields that do not vary: zeros if they were not put. */
static void fill_in(const mpidata_incoming *in, const mpidata_assembly *assembly) {
    const mpidata_plan *plan = &in->trainer->job.plan;
    for (int f = 0; f < plan->n_fields; f++) {
        const mpidata_field *field = &plan->fields[f];
        if (field->given < 0 || field->varying >= 0 || field->per_simulation) continue;
        assembly->memory->parts.numbers[field->given] = !assembly->missing[f];
        if (assembly->missing[f]) memset(mpidata_assembly_field(&in->trainer->slots, assembly, f), 0, (size_t)field->elements * field->element_size);
    }
}

static int join_parts(const mpidata_incoming *in, const mpidata_assembly *assembly) {
    char text[MPIDATA_TEXT_MAX], who[128];
    fill_in(in, assembly);
    const int status = mpidata_parts_join(&assembly->memory->parts, &in->trainer->job.plan);
    if (!status) return MPIDATA_SUCCESS;
    memcpy(text, mpidata_last_error(), sizeof text);
    const char *advice = status == MPIDATA_ERR_ARGUMENT ? "Indices count along the joined parts of all ranks."
                         : status == MPIDATA_ERR_FIELD  ? "In each step put each field, by at least one rank."
                                                        : "The parts of all ranks are joined, and lengths in the job file has the limits.";
    mpidata_assembly_who(assembly, who, sizeof who);
    return mpidata_error(status, "%.1500s. %s. %s", text, who, advice);
}

/* Steps that waited for the constants may now be whole. */
static int finish_constants(mpidata_incoming *in, mpidata_assembly *assembly) {
    mpidata_assembly **waiting;
    int64_t n;
    int status = mpidata_constants_whole(in, assembly, &waiting, &n);
    for (int64_t i = 0; !status && i < n; i++) status = mpidata_finish_if_whole(in, waiting[i]);
    free(waiting);
    return status;
}

/* The steps that are ready become samples, in order: a message has many small ones, and the lock is taken once for all. */
static int enter_ready(mpidata_incoming *in) {
    if (!in->n_ready) return MPIDATA_SUCCESS;
    int status = MPIDATA_SUCCESS;
    mpidata_lock_take(&in->trainer->lock);
    for (int i = 0; i < in->n_ready && !status; i++) status = mpidata_step_whole_locked(in->trainer, &in->assemblies, in->ready[i]);
    mpidata_lock_give(&in->trainer->lock);
    in->n_ready = 0;
    return status;
}

static int make_ready(mpidata_incoming *in, mpidata_assembly *assembly) {
    if (!mpidata_assembly_whole(&in->assemblies, assembly)) return MPIDATA_SUCCESS;
    if (assembly->n_mapped) MPIDATA_TRY(mpidata_place_mapped(in, assembly));
    if (assembly->slot < 0) {
        MPIDATA_TRY(enter_ready(in));
        return finish_constants(in, assembly);
    }
    if (in->trainer->job.plan.n_numbers) MPIDATA_TRY(join_parts(in, assembly));
    in->ready[in->n_ready++] = assembly;
    return in->n_ready == MPIDATA_READY_MAX ? enter_ready(in) : MPIDATA_SUCCESS;
}

int mpidata_finish_if_whole(mpidata_incoming *in, mpidata_assembly *assembly) {
    MPIDATA_TRY(make_ready(in, assembly));
    return enter_ready(in);
}

/* Training samples that have come before the next one and have not been drawn yet. */
static int64_t ahead_locked(const mpidata_incoming *in) {
    MPIDATA_LOCKED(&in->trainer->lock);
    const mpidata_assemblies *all = &in->assemblies;
    return in->trainer->buffer.count + in->trainer->n_arrived + all->count - all->lost - all->validation;
}

static int begin_assembly_locked(mpidata_incoming *in, const mpidata_source *source, const mpidata_piece *piece,
                          const double *parameters, mpidata_assembly **assembly) {
    MPIDATA_LOCKED(&in->trainer->lock);
    mpidata_trainer *trainer = in->trainer;
    int64_t slot = mpidata_slots_take(&trainer->slots, source->validation ? -1 : ahead_locked(in));
    if (slot >= 0)
        *assembly = mpidata_assembly_new(&in->assemblies, source->group, piece->by_try, piece->simulation, piece->step, slot,
                                         source->validation);
    if (!*assembly)
        return mpidata_error(MPIDATA_ERR_MEMORY,
                             "Out of memory: no room for another sample of %zu bytes. Lower buffer.capacity in the job "
                             "file",
                             trainer->job.plan.slot_bytes);
    (*assembly)->memory = trainer->slots.slots[slot];
    (*assembly)->parts = &(*assembly)->memory->parts;
    (*assembly)->memory->group = source->group;
    (*assembly)->constants = source->constants;
    if (source->constants) mpidata_slot_set_constants((*assembly)->memory, source->constants);
    size_t n = (size_t)trainer->job.plan.n_parameters;
    if (n) memcpy((*assembly)->memory->parameters, parameters, n * sizeof *parameters);
    return MPIDATA_SUCCESS;
}

/* Another try may have delivered the sample since its first piece came: it is still completed, and then dropped, or the end of
 * the stream would wait for it. */
static int unwanted_locked(mpidata_incoming *in, const mpidata_source *source, const mpidata_piece *piece, int begun) {
    MPIDATA_LOCKED(&in->trainer->lock);
    mpidata_trainer *trainer = in->trainer;
    if (source->lost || trainer->ledger.entries[piece->simulation].cancelled == MPIDATA_CANCEL_TOLD) return 1;
    if (trainer->journal.n_cancelled && !source->validation && mpidata_journal_drops(&trainer->journal, piece->simulation, piece->step)) return 1;
    int duplicate = !begun && mpidata_trainer_has_step_locked(trainer, piece->simulation, piece->step);
    trainer->statistics.duplicates += duplicate && !mpidata_stopping(&trainer->phase);
    const int anothers = !begun && !source->validation && mpidata_is_anothers_locked(trainer, piece->simulation, piece->step);
    return mpidata_stopping(&trainer->phase) || duplicate || anothers;
}

/* Leaves *assembly NULL if the piece must be dropped. */
static int assembly_for(mpidata_incoming *in, const mpidata_source *source, const mpidata_piece *piece,
                        const double *parameters, mpidata_assembly **assembly) {
    int status = MPIDATA_SUCCESS;
    *assembly = mpidata_assembly_find(&in->assemblies, source->group, piece->by_try, piece->simulation, piece->step);
    mpidata_lock_take(&in->trainer->lock);
    if (unwanted_locked(in, source, piece, *assembly != NULL))
        *assembly = NULL;
    else if (in->trainer->job.plan.n_constants && (status = mpidata_constants_check(source, piece)))
        *assembly = NULL;
    else if (!*assembly)
        status = begin_assembly_locked(in, source, piece, parameters, assembly);
    if (*assembly && !status) in->trainer->statistics.bytes += piece->payload_bytes;
    mpidata_lock_give(&in->trainer->lock);
    return status;
}

static int check_route(const mpidata_incoming *in, const mpidata_piece *piece, const mpidata_source *source) {
    const mpidata_job *job = &in->trainer->job;
    int trainers[2], n = mpidata_plan_trainers(&job->plan, piece->simulation, piece->step, trainers);
    /* If trainers may die, the group may know of more or fewer deaths. */
    const int elsewhere = !job->plan.trainers_at_least && trainers[0] != job->index && trainers[n - 1] != job->index;
    if (source->group < 0 || elsewhere ||
        source->validation != (piece->simulation >= job->plan.simulations))
        return mpidata_error(MPIDATA_ERR_WIRE, "A piece of simulation %lld, step %lld came to the wrong place",
                             (long long)piece->simulation, (long long)piece->step);
    return MPIDATA_SUCCESS;
}

/* Names the sample: the ranks that have put too much need not have sent the last piece. */
static int check(mpidata_incoming *in, mpidata_assembly *assembly) {
    char text[MPIDATA_TEXT_MAX], who[128];
    const int status = mpidata_assembly_check(&in->assemblies, assembly);
    if (status != MPIDATA_ERR_BLOCK) return status;
    memcpy(text, mpidata_last_error(), sizeof text);
    mpidata_assembly_who(assembly, who, sizeof who);
    return mpidata_error(MPIDATA_ERR_FIELD, "%.1500s. %s. Put each element of each field exactly once.", text, who);
}

/* Announce the blocks of a piece; those that are parts get memory. */
static int announce_blocks(mpidata_incoming *in, const mpidata_source *source, mpidata_assembly *assembly, const mpidata_block *blocks,
                           int n) {
    const mpidata_plan *plan = &in->trainer->job.plan;
    mpidata_slots *slots = &in->trainer->slots;
    MPIDATA_TRY(mpidata_assembly_hear(&in->assemblies, assembly, source->rank_in_group));
    for (int i = 0; i < n; i++) {
        if (!mpidata_block_is_part(plan, &blocks[i])) {
            MPIDATA_TRY(mpidata_assembly_announce(&in->assemblies, assembly, &blocks[i], source->rank_in_group));
            continue;
        }
        mpidata_lock_take(&in->trainer->lock);
        const int part = mpidata_parts_add(assembly->parts, &slots->heap, plan, &blocks[i], source->rank_in_group);
        mpidata_lock_give(&in->trainer->lock);
        if (part < 0)
            return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory: no room for another %zu bytes of field '%s'. Lower buffer.capacity "
                                                     "in the job file",
                                 mpidata_block_bytes(plan, &blocks[i]), plan->fields[blocks[i].field].name);
        if (blocks[i].map) MPIDATA_TRY(mpidata_announce_mapped(in, source, assembly, &blocks[i], part));
        assembly->outstanding++;
    }
    return check(in, assembly);
}

/* The blocks that do not travel along come next. */
static int expect_blocks(const mpidata_incoming *in, mpidata_source *source, mpidata_assembly *assembly, int first,
                         const mpidata_block *blocks, int n) {
    const mpidata_plan *plan = &in->trainer->job.plan;
    mpidata_walk walk = {.in_all = mpidata_blocks_bytes(plan, blocks, n)};
    if (!mpidata_array_reserve(&source->blocks, &source->allocated, n, 0, sizeof *source->blocks))
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory in the trainer's receive thread");
    source->n_blocks = source->next = 0;
    for (int i = 0; i < n; i++) {
        const int part = mpidata_block_is_part(plan, &blocks[i]) ? first++ : -1;
        if (mpidata_walk_on(&walk, mpidata_block_bytes(plan, &blocks[i]))) continue;
        source->blocks[source->n_blocks++] = (mpidata_expected_block){blocks[i], part};
    }
    source->assembly = source->n_blocks ? assembly : NULL;
    return MPIDATA_SUCCESS;
}

static int take_payload(mpidata_incoming *in, mpidata_assembly *assembly, int first, const mpidata_block *blocks, int n,
                        const char *payload) {
    const mpidata_plan *plan = &in->trainer->job.plan;
    mpidata_walk walk = {.in_all = mpidata_blocks_bytes(plan, blocks, n)};
    for (int i = 0; i < n; i++) {
        const mpidata_field *field = &plan->fields[blocks[i].field];
        const size_t bytes = mpidata_block_bytes(plan, &blocks[i]);
        const int part = mpidata_block_is_part(plan, &blocks[i]) ? first++ : -1;
        if (!mpidata_walk_on(&walk, bytes)) continue;
        if (part >= 0)
            memcpy(assembly->parts->list[part].values, payload + walk.place, bytes);
        else
            mpidata_block_copy(field, &blocks[i], mpidata_assembly_field(&in->trainer->slots, assembly, blocks[i].field), payload + walk.place);
        assembly->outstanding--;
    }
    return make_ready(in, assembly);
}

static void merge_moments(const mpidata_plan *plan, const mpidata_source *source, mpidata_moments *into, const mpidata_piece *piece,
                          const mpidata_block *blocks) {
    const mpidata_moments *moments = mpidata_piece_moments(piece, blocks);
    for (int i = 0; i < piece->n_blocks; i++) {
        const mpidata_field *field = &plan->fields[blocks[i].field];
        const int begins_at_0 = field->channel_axis < 0 || field->varying >= 0; /* parts have no start */
        int64_t n = mpidata_block_moments(plan, &blocks[i]), first = begins_at_0 ? 0 : blocks[i].start[field->channel_axis];
        if (blocks[i].map && field->channel_axis == 0 && field->varying < 0)
            mpidata_merge_row_moments(source, &blocks[i], into + field->moments, moments);
        else
            mpidata_moments_merge(into + field->moments + first, moments, n);
        moments += n;
    }
}

static int take_piece(mpidata_incoming *in, mpidata_source *source, const char *message, size_t *bytes) {
    const mpidata_piece *piece;
    const double *parameters;
    const mpidata_block *blocks;
    const char *payload;
    mpidata_assembly *assembly;
    const mpidata_plan *plan = &in->trainer->job.plan;
    MPIDATA_TRY(mpidata_piece_check(plan, message, *bytes, &piece, &parameters, &blocks, &payload));
    *bytes = mpidata_piece_bytes(plan->n_parameters, piece->n_blocks, mpidata_blocks_moments(plan, blocks, piece->n_blocks),
                                 piece->payload_bytes);
    in->simulation = piece->simulation;
    in->step = piece->step;
    if (piece->step == MPIDATA_STEP_OF_CONSTANTS) {
        MPIDATA_TRY(mpidata_constants_begin(in, source, piece, &assembly));
    } else {
        MPIDATA_TRY(check_route(in, piece, source));
        MPIDATA_TRY(assembly_for(in, source, piece, parameters, &assembly));
    }
    const int first = assembly ? assembly->parts->n : 0;
    MPIDATA_TRY(expect_blocks(in, source, assembly, first, blocks, piece->n_blocks));
    if (!assembly) return MPIDATA_SUCCESS;
    if (source->rank < assembly->first_rank) {
        assembly->first_rank = source->rank;
        assembly->time = piece->time;
    }
    MPIDATA_TRY(announce_blocks(in, source, assembly, blocks, piece->n_blocks));
    if (plan->n_moments) merge_moments(plan, source, assembly->slot < 0 ? assembly->constants->moments : assembly->memory->moments, piece, blocks);
    return take_payload(in, assembly, first, blocks, piece->n_blocks, payload);
}

int mpidata_name_sender(const mpidata_incoming *in, const mpidata_source *source, int status) {
    char text[MPIDATA_TEXT_MAX], who[128];
    /* These errors already name the sample. */
    if (status == MPIDATA_ERR_SHAPE || status == MPIDATA_ERR_ARGUMENT || status == MPIDATA_ERR_FIELD) return status;
    memcpy(text, mpidata_last_error(), sizeof text);
    mpidata_link_who(source->link, &in->trainer->job.plan, source->rank, who, sizeof who);
    if (in->simulation >= 0 && status != MPIDATA_ERR_WIRE)
        return mpidata_error(status, "%.1500s. %s, simulation %lld, step %lld. Put each element of each field exactly once.",
                             text, who, (long long)in->simulation, (long long)in->step);
    return mpidata_error(status, "%.1500s. %s sent it. Use one build of libmpidata for the whole job.", text, who);
}

int mpidata_take_pieces(mpidata_incoming *in, mpidata_source *source, const char *message, size_t bytes) {
    for (size_t at = 0, left; (left = bytes - at) > 0; at += left) {
        int status = take_piece(in, source, message + at, &left);
        if (status) return mpidata_name_sender(in, source, status);
    }
    return enter_ready(in);
}
