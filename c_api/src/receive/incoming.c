#include "receive/incoming.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/wait.h"
#include "receive/replay.h"
#include "receive/whole.h"
#include "stream/budget.h"
#include "stream/progress.h"

/* What a dead rank has under way is given up without a word: the scheduler hears of its death, and acts. */
static int forgive_death(int status) { return status == MPIDATA_ERR_DIED ? MPIDATA_SUCCESS : status; }

/* -- opening and closing -------------------------------------------------------------------------------------------- */

int mpidata_incoming_open(mpidata_incoming *in, mpidata_trainer *trainer) {
    memset(in, 0, sizeof *in);
    in->trainer = trainer;
    mpidata_assemblies_open(&in->assemblies, &trainer->job.plan);
    return mpidata_incoming_add(in, trainer->job.data, 0, 0);
}

static void open_sources(mpidata_inlet *inlet, const mpidata_plan *plan) {
    for (int i = 0; i < inlet->link.n_ranks * MPIDATA_STREAMS; i++) {
        int rank_in_group;
        mpidata_source *source = &inlet->sources[i];
        source->link = &inlet->link;
        source->rank = i / MPIDATA_STREAMS;
        source->validation = i % MPIDATA_STREAMS;
        source->group = mpidata_link_group(&inlet->link, plan, source->rank, &rank_in_group);
        source->request = MPI_REQUEST_NULL;
    }
}

int mpidata_incoming_add(mpidata_incoming *in, MPI_Comm comm, int role, int number) {
    const mpidata_plan *plan = &in->trainer->job.plan;
    mpidata_inlet **grown = realloc(in->inlets, (size_t)(in->n_inlets + 1) * sizeof(void *));
    mpidata_inlet *inlet = calloc(1, sizeof *inlet);
    if (grown) in->inlets = grown;
    if (!grown || !inlet) {
        free(inlet);
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory in the trainer's receive thread.");
    }
    int status = in->n_inlets ? mpidata_link_open_spawned(&inlet->link, comm, role, number)
                              : mpidata_link_open_world(&inlet->link, comm, plan);
    if (!status) {
        inlet->sources = calloc((size_t)inlet->link.n_ranks * MPIDATA_STREAMS, sizeof *inlet->sources);
        if (!inlet->sources) status = mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory in the trainer's receive thread.");
    }
    if (status) {
        mpidata_link_close(&inlet->link);
        free(inlet);
        return status;
    }
    open_sources(inlet, plan);
    in->inlets[in->n_inlets++] = inlet;
    return MPIDATA_SUCCESS;
}

static void close_inlet(mpidata_inlet *inlet) {
    for (int i = 0; i < inlet->link.n_ranks * MPIDATA_STREAMS; i++) {
        mpidata_source *source = &inlet->sources[i];
        free(source->blocks);
        if (source->bytes > MPIDATA_BUNDLE_MAX) free(source->message);
        for (mpidata_queued *queued = source->first, *next; queued; queued = next) {
            next = queued->next;
            free(queued);
        }
    }
    mpidata_inbox_close(inlet->inbox);
    free(inlet->sources);
    mpidata_link_close(&inlet->link);
    free(inlet);
}

void mpidata_incoming_close(mpidata_incoming *in) {
    mpidata_receives_close(&in->receives);
    for (int i = 0; i < in->n_inlets; i++) close_inlet(in->inlets[i]);
    free(in->inlets);
    free(in->pending);
    mpidata_arena_close(&in->arena);
    mpidata_assemblies_close(&in->assemblies);
}

int mpidata_incoming_busy(const mpidata_incoming *in) {
    return in->receives.n > 0 || in->n_pending > 0 || in->parcels_under_way > 0;
}

/* -- pieces --------------------------------------------------------------------------------------------------------- */

static int finish_if_whole(mpidata_incoming *in, mpidata_assembly *assembly) {
    if (!mpidata_assembly_whole(&in->assemblies, assembly)) return MPIDATA_SUCCESS;
    mpidata_lock_take(&in->trainer->lock);
    int status = mpidata_step_whole_locked(in->trainer, &in->assemblies, assembly);
    mpidata_lock_give(&in->trainer->lock);
    return status;
}

/* Training samples that came before the next one and were not drawn yet. */
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
    (*assembly)->memory->group = source->group;
    size_t n = (size_t)trainer->job.plan.n_parameters;
    if (n) memcpy((*assembly)->memory->parameters, parameters, n * sizeof *parameters);
    return MPIDATA_SUCCESS;
}

/* Another try may have brought the sample since the first piece of it came: it is made whole
 * nevertheless, and dropped then, or it would be waited for at the end of the stream. */
static int unwanted_locked(mpidata_incoming *in, const mpidata_source *source, const mpidata_piece *piece, int begun) {
    MPIDATA_LOCKED(&in->trainer->lock);
    mpidata_trainer *trainer = in->trainer;
    if (source->lost) return 1;
    int duplicate = !begun && mpidata_trainer_has_step_locked(trainer, piece->simulation, piece->step);
    trainer->statistics.duplicates += duplicate && !mpidata_stopping(&trainer->phase);
    return mpidata_stopping(&trainer->phase) || duplicate;
}

/* Leaves *assembly NULL where the piece is to be dropped. */
static int assembly_for(mpidata_incoming *in, const mpidata_source *source, const mpidata_piece *piece,
                        const double *parameters, mpidata_assembly **assembly) {
    int status = MPIDATA_SUCCESS;
    *assembly = mpidata_assembly_find(&in->assemblies, source->group, piece->by_try, piece->simulation, piece->step);
    mpidata_lock_take(&in->trainer->lock);
    if (unwanted_locked(in, source, piece, *assembly != NULL))
        *assembly = NULL;
    else if (!*assembly)
        status = begin_assembly_locked(in, source, piece, parameters, assembly);
    if (*assembly && !status) in->trainer->statistics.bytes += piece->payload_bytes;
    mpidata_lock_give(&in->trainer->lock);
    return status;
}

static char *field_memory(const mpidata_incoming *in, const mpidata_assembly *assembly, int field) {
    return mpidata_slot_field(&in->trainer->slots, assembly->memory, field);
}

static void count_bytes(mpidata_incoming *in, int64_t bytes) {
    mpidata_lock_take(&in->trainer->lock);
    in->trainer->statistics.bytes += bytes;
    mpidata_lock_give(&in->trainer->lock);
}

static int check_route(const mpidata_incoming *in, const mpidata_piece *piece, const mpidata_source *source) {
    const mpidata_job *job = &in->trainer->job;
    int trainers[2], n = mpidata_plan_trainers(&job->plan, piece->simulation, piece->step, trainers);
    if (source->group < 0 || (trainers[0] != job->index && trainers[n - 1] != job->index) ||
        source->validation != (piece->simulation >= job->plan.simulations))
        return mpidata_error(MPIDATA_ERR_WIRE, "A piece of simulation %lld, step %lld came to the wrong place",
                             (long long)piece->simulation, (long long)piece->step);
    return MPIDATA_SUCCESS;
}

/* The blocks that do not travel along are to come next. */
static int expect_blocks(const mpidata_incoming *in, mpidata_source *source, mpidata_assembly *assembly,
                         const mpidata_block *blocks, int n) {
    const mpidata_plan *plan = &in->trainer->job.plan;
    mpidata_walk walk = {.in_all = mpidata_blocks_bytes(plan, blocks, n)};
    if (n > source->allocated) {
        void *grown = realloc(source->blocks, (size_t)n * sizeof *source->blocks);
        if (!grown) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory in the trainer's receive thread");
        source->blocks = grown;
        source->allocated = n;
    }
    source->n_blocks = source->next = 0;
    for (int i = 0; i < n; i++)
        if (!mpidata_walk_on(&walk, mpidata_block_bytes(plan, &blocks[i]))) source->blocks[source->n_blocks++] = blocks[i];
    source->assembly = source->n_blocks ? assembly : NULL;
    return MPIDATA_SUCCESS;
}

static int take_payload(mpidata_incoming *in, mpidata_assembly *assembly, const mpidata_block *blocks, int n,
                        const char *payload) {
    const mpidata_plan *plan = &in->trainer->job.plan;
    mpidata_walk walk = {.in_all = mpidata_blocks_bytes(plan, blocks, n)};
    for (int i = 0; i < n; i++) {
        if (!mpidata_walk_on(&walk, mpidata_block_bytes(plan, &blocks[i]))) continue;
        mpidata_block_copy(&plan->fields[blocks[i].field], &blocks[i], field_memory(in, assembly, blocks[i].field),
                           payload + walk.place);
        assembly->outstanding--;
    }
    return finish_if_whole(in, assembly);
}

static void merge_moments(const mpidata_plan *plan, mpidata_slot *slot, const mpidata_piece *piece,
                          const mpidata_block *blocks) {
    const mpidata_moments *moments = mpidata_piece_moments(piece, blocks);
    for (int i = 0; i < piece->n_blocks; i++) {
        const mpidata_field *field = &plan->fields[blocks[i].field];
        int64_t n = mpidata_block_moments(plan, &blocks[i]), first = field->channel_axis < 0 ? 0 : blocks[i].start[field->channel_axis];
        mpidata_moments_merge(slot->moments + field->moments + first, moments, n);
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
    MPIDATA_TRY(check_route(in, piece, source));
    MPIDATA_TRY(assembly_for(in, source, piece, parameters, &assembly));
    MPIDATA_TRY(expect_blocks(in, source, assembly, blocks, piece->n_blocks));
    if (!assembly) return MPIDATA_SUCCESS;
    if (source->rank < assembly->first_rank) {
        assembly->first_rank = source->rank;
        assembly->time = piece->time;
    }
    for (int i = 0; i < piece->n_blocks; i++)
        MPIDATA_TRY(mpidata_assembly_announce(&in->assemblies, assembly, &blocks[i], source->rank));
    if (plan->n_moments) merge_moments(plan, assembly->memory, piece, blocks);
    return take_payload(in, assembly, blocks, piece->n_blocks, payload);
}

static int name_sender(const mpidata_incoming *in, const mpidata_source *source, int status) {
    char text[MPIDATA_TEXT_MAX], who[128];
    memcpy(text, mpidata_last_error(), sizeof text);
    mpidata_link_who(source->link, &in->trainer->job.plan, source->rank, who, sizeof who);
    if (in->simulation >= 0 && status != MPIDATA_ERR_WIRE)
        return mpidata_error(status, "%.1500s. %s, simulation %lld, step %lld. Put each element of each field exactly once.",
                             text, who, (long long)in->simulation, (long long)in->step);
    return mpidata_error(status, "%.1500s. %s sent it. Use one build of libmpidata for the whole job.", text, who);
}

static int take_all_pieces(mpidata_incoming *in, mpidata_source *source, const char *message, size_t bytes) {
    for (size_t at = 0, left; (left = bytes - at) > 0; at += left) {
        int status = take_piece(in, source, message + at, &left);
        if (status) return name_sender(in, source, status);
    }
    return MPIDATA_SUCCESS;
}

/* -- messages ------------------------------------------------------------------------------------------------------- */

static int reserve_pending(mpidata_incoming *in) {
    int n = in->pending_allocated ? 2 * in->pending_allocated : MPIDATA_PENDING_MAX;
    if (in->n_pending < in->pending_allocated) return MPIDATA_SUCCESS;
    void *pending = realloc(in->pending, (size_t)n * sizeof *in->pending);
    if (!pending) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory in the trainer's receive thread.");
    in->pending = pending;
    in->pending_allocated = n;
    return MPIDATA_SUCCESS;
}

static int may_begin_pieces(const mpidata_incoming *in) {
    return in->n_pending < MPIDATA_PENDING_MAX || mpidata_lasts_long(in->pending[in->n_pending - MPIDATA_PENDING_MAX]->since);
}

/* There is room. */
static void add_pending(mpidata_incoming *in, mpidata_source *source) {
    for (int i = 0; i < in->n_pending; i++)
        if (in->pending[i] == source) return;
    source->since = mpidata_now();
    in->pending[in->n_pending++] = source;
}

static char *take_memory(mpidata_incoming *in, size_t bytes) {
    if (bytes > MPIDATA_BUNDLE_MAX) return malloc(bytes);
    char *spare = in->spare;
    if (!spare) return mpidata_arena_take(&in->arena, MPIDATA_BUNDLE_MAX);
    memcpy(&in->spare, spare, sizeof in->spare);
    return spare;
}

static void give_back_memory(mpidata_incoming *in, char *memory, size_t bytes) {
    if (bytes > MPIDATA_BUNDLE_MAX) {
        free(memory);
        return;
    }
    memcpy(memory, &in->spare, sizeof in->spare);
    in->spare = memory;
}

static void end_message(mpidata_incoming *in, mpidata_source *source) {
    give_back_memory(in, source->message, source->bytes);
    source->message = NULL;
}

static int take_message(mpidata_incoming *in, mpidata_source *source) {
    int status = take_all_pieces(in, source, source->message, source->bytes);
    end_message(in, source);
    return status;
}

/* A message with the header of one large piece, or with small pieces. */
static int receive_pieces(mpidata_incoming *in, mpidata_source *source, MPI_Message *message, const MPI_Status *status) {
    int bytes = 0, done = 0;
    MPIDATA_TRY_MPI(MPI_Get_count(status, MPI_BYTE, &bytes));
    in->simulation = in->step = -1;
    const mpidata_plan *plan = &in->trainer->job.plan;
    int64_t moments = (int64_t)MPIDATA_BLOCKS_MAX * plan->n_moments;
    size_t header = mpidata_piece_header_bytes(plan->n_parameters, MPIDATA_BLOCKS_MAX, moments);
    if (bytes <= 0 || (size_t)bytes > header + MPIDATA_BUNDLE_MAX)
        return mpidata_error(MPIDATA_ERR_WIRE, "A message of %d bytes has no pieces", bytes);
    char *memory = source->message = take_memory(in, (size_t)bytes);
    if (!memory) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory: %d bytes for a message", bytes);
    source->bytes = (size_t)bytes;
    int result = mpidata_check_mpi(MPI_Imrecv(memory, bytes, MPI_BYTE, message, &source->request), "MPI_Imrecv");
    if (!result) result = mpidata_check_mpi(MPI_Test(&source->request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (result) {
        end_message(in, source);
        return result;
    }
    if (done) return take_message(in, source);
    add_pending(in, source);
    return MPIDATA_SUCCESS;
}

static int receive_in_place(mpidata_incoming *in, const mpidata_field *field, const mpidata_block *block, char *target,
                            MPI_Message *message) {
    int64_t offset;
    MPI_Datatype element = mpidata_dtype_mpi(field->dtype), type;
    MPI_Request *request = &in->receives.requests[in->receives.n];
    if (mpidata_block_contiguous(field, block, &offset)) {
        MPIDATA_TRY_MPI(MPI_Imrecv(target + (size_t)offset * field->element_size, (int)mpidata_block_elements(block),
                                   element, message, request));
        return MPIDATA_SUCCESS;
    }
    int sizes[MPIDATA_MAX_NDIM], shape[MPIDATA_MAX_NDIM], start[MPIDATA_MAX_NDIM];
    for (int d = 0; d < field->ndim; d++) {
        sizes[d] = (int)field->shape[d];
        shape[d] = (int)block->shape[d];
        start[d] = (int)block->start[d];
    }
    MPIDATA_TRY_MPI(MPI_Type_create_subarray(field->ndim, sizes, shape, start, MPI_ORDER_C, element, &type));
    MPIDATA_TRY_MPI(MPI_Type_commit(&type));
    int status = mpidata_check_mpi(MPI_Imrecv(target, 1, type, message, request), "MPI_Imrecv");
    MPIDATA_TRY_MPI(MPI_Type_free(&type));
    return status;
}

static int receive_scrap(mpidata_incoming *in, const mpidata_field *field, int elements, MPI_Message *message) {
    char *scrap = malloc((size_t)elements * field->element_size + 1);
    if (!scrap) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a block that is to be dropped");
    int status = mpidata_check_mpi(
        MPI_Imrecv(scrap, elements, mpidata_dtype_mpi(field->dtype), message, &in->receives.requests[in->receives.n]), "MPI_Imrecv");
    if (status) {
        free(scrap);
        return status;
    }
    mpidata_receives_add(&in->receives, NULL, scrap);
    return MPIDATA_SUCCESS;
}

static int receive_block(mpidata_incoming *in, mpidata_source *source, MPI_Message *message, const MPI_Status *status) {
    const mpidata_block *block = &source->blocks[source->next++];
    const mpidata_field *field = &in->trainer->job.plan.fields[block->field];
    int elements = 0;
    int64_t expected = mpidata_block_elements(block);
    MPIDATA_TRY_MPI(MPI_Get_count(status, mpidata_dtype_mpi(field->dtype), &elements));
    if (elements != expected)
        return mpidata_error(MPIDATA_ERR_WIRE, "A block of field '%s' has %d elements instead of the announced %lld",
                             field->name, elements, (long long)expected);
    MPIDATA_TRY(mpidata_receives_reserve(&in->receives));
    if (!source->assembly) return receive_scrap(in, field, elements, message);
    MPIDATA_TRY(receive_in_place(in, field, block, field_memory(in, source->assembly, block->field), message));
    mpidata_receives_add(&in->receives, source->assembly, NULL);
    source->assembly->under_way++;
    count_bytes(in, expected * (int64_t)field->element_size);
    return MPIDATA_SUCCESS;
}

static int start(mpidata_incoming *in, mpidata_source *source, MPI_Message *message, const MPI_Status *status) {
    int result = source->next < source->n_blocks ? receive_block(in, source, message, status)
                                                 : receive_pieces(in, source, message, status);
    if (result == MPIDATA_ERR_WIRE || result == MPIDATA_ERR_MEMORY) return name_sender(in, source, result);
    return forgive_death(result);
}

static int enqueue(mpidata_incoming *in, mpidata_source *source, MPI_Message message, const MPI_Status *status) {
    mpidata_queued *queued = malloc(sizeof *queued);
    if (!queued) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory in the trainer's receive thread.");
    *queued = (mpidata_queued){message, *status, NULL};
    *(source->first ? &source->last->next : &source->first) = queued;
    source->last = queued;
    add_pending(in, source);
    return MPIDATA_SUCCESS;
}

static int start_queued(mpidata_incoming *in, mpidata_source *source) {
    while (source->first && !source->message && mpidata_receives_may_begin(&in->receives)) {
        mpidata_queued *queued = source->first;
        source->first = queued->next;
        int status = start(in, source, &queued->message, &queued->status);
        free(queued);
        MPIDATA_TRY(status);
    }
    return MPIDATA_SUCCESS;
}

static int advance_source(mpidata_incoming *in, mpidata_source *source, int *did) {
    if (source->message) {
        int done = 0, status = mpidata_check_mpi(MPI_Test(&source->request, &done, MPI_STATUS_IGNORE), "MPI_Test");
        if (!status && !done) return MPIDATA_SUCCESS;
        *did = 1;
        if (!status)
            status = take_message(in, source);
        else
            end_message(in, source);
        MPIDATA_TRY(forgive_death(status));
    }
    return start_queued(in, source);
}

static int advance_pending(mpidata_incoming *in, int *did) {
    int kept = 0, status = MPIDATA_SUCCESS;
    for (int i = 0; i < in->n_pending; i++) {
        mpidata_source *source = in->pending[i];
        if (!status) status = advance_source(in, source, did);
        if (source->message || source->first) in->pending[kept++] = source;
    }
    in->n_pending = kept;
    return status;
}

static int intake_open(mpidata_incoming *in) {
    mpidata_trainer *trainer = in->trainer;
    mpidata_lock_take(&trainer->lock);
    int room = !trainer->n_arrived && !mpidata_buffer_full(&trainer->buffer) && !mpidata_budget_behind_locked(trainer);
    room = room || trainer->journal.replayed;
    int open = mpidata_record_lets_in_locked(&trainer->record, room) || mpidata_stopping(&trainer->phase);
    mpidata_lock_give(&trainer->lock);
    return open;
}

/* The scheduler acts on the death of a solver or trainer; its own must end this rank. */
int mpidata_incoming_note_deaths(mpidata_inlet *inlet) {
    MPIDATA_TRY(mpidata_link_deaths(&inlet->link));
    return inlet->link.dead[0] ? mpidata_error(MPIDATA_ERR_DIED, "The scheduler has died.") : MPIDATA_SUCCESS;
}

/* Take messages of one stream until there are none, or too much is under way. */
static int take_messages(mpidata_incoming *in, mpidata_inlet *inlet, int validation, int *did) {
    int tag = validation ? MPIDATA_TAG_VALIDATION : MPIDATA_TAG_SAMPLE;
    for (int n = 0; n < MPIDATA_RECEIVES_MAX; n++) {
        int here = 0;
        MPI_Message message;
        MPI_Status status;
        if (!mpidata_receives_may_begin(&in->receives) || !may_begin_pieces(in)) break;
        if (n % 8 == 0 && !validation && !intake_open(in)) break;
        int found = !validation && in->trainer->journal.replayed
            ? mpidata_replay_probe(in->trainer, inlet, &here, &message, &status)
            : mpidata_check_mpi(MPI_Improbe(MPI_ANY_SOURCE, tag, inlet->link.comm, &here, &message, &status), "MPI_Improbe");
        if (found == MPIDATA_ERR_DIED) return mpidata_incoming_note_deaths(inlet);
        MPIDATA_TRY(found);
        if (!here) break;
        *did = 1;
        MPIDATA_TRY(reserve_pending(in));
        mpidata_source *source = &inlet->sources[MPIDATA_STREAMS * status.MPI_SOURCE + validation];
        if (source->message || source->first)
            MPIDATA_TRY(enqueue(in, source, message, &status));
        else
            MPIDATA_TRY(start(in, source, &message, &status));
    }
    return MPIDATA_SUCCESS;
}

static int block_ended(mpidata_incoming *in, const mpidata_receive *ended) {
    free(ended->scrap);
    mpidata_assembly *assembly = ended->assembly;
    if (!assembly) return MPIDATA_SUCCESS;
    assembly->under_way--;
    if (!ended->failed) assembly->outstanding--;
    if (!assembly->lost) return ended->failed ? MPIDATA_SUCCESS : finish_if_whole(in, assembly);
    if (assembly->under_way) return MPIDATA_SUCCESS;
    mpidata_lock_take(&in->trainer->lock);
    mpidata_drop_assembly_locked(in->trainer, &in->assemblies, assembly);
    mpidata_lock_give(&in->trainer->lock);
    return MPIDATA_SUCCESS;
}

static int complete_blocks(mpidata_incoming *in, int *did) {
    int n_ended;
    MPIDATA_TRY(mpidata_receives_test(&in->receives, &n_ended));
    if (n_ended) *did = 1;
    for (int i = 0; i < n_ended; i++) MPIDATA_TRY(block_ended(in, &in->receives.ended[i]));
    return MPIDATA_SUCCESS;
}

/* When nothing is under way at all, nothing is so with a group that has left or is lost. The communicator of a lost one is left
 * to MPI: to free it may wait for the dead. */
static int free_gone(mpidata_incoming *in) {
    if (mpidata_incoming_busy(in)) return MPIDATA_SUCCESS;
    for (int i = in->n_inlets - 1; i > 0; i--) {
        mpidata_inlet *inlet = in->inlets[i];
        if (!inlet->gone && !inlet->lost) continue;
        in->inlets[i] = in->inlets[--in->n_inlets];
        MPI_Comm comm = inlet->link.comm;
        const int lost = inlet->lost;
        close_inlet(inlet);
        if (!lost) MPIDATA_TRY_MPI(MPI_Comm_free(&comm));
    }
    return MPIDATA_SUCCESS;
}

static int has_groups(const mpidata_inlet *inlet) { return inlet->link.n_groups && !inlet->lost; }

int mpidata_incoming_validation(mpidata_incoming *in, int *did) {
    for (int i = 0; i < in->n_inlets && in->trainer->job.plan.validation; i++)
        if (has_groups(in->inlets[i])) MPIDATA_TRY(take_messages(in, in->inlets[i], 1, did));
    return MPIDATA_SUCCESS;
}

int mpidata_incoming_take(mpidata_incoming *in, int *did) {
    for (int i = 0; i < in->n_inlets; i++)
        if (has_groups(in->inlets[i])) MPIDATA_TRY(take_messages(in, in->inlets[i], 0, did));
    MPIDATA_TRY(complete_blocks(in, did));
    MPIDATA_TRY(advance_pending(in, did));
    return in->n_inlets > 1 ? free_gone(in) : MPIDATA_SUCCESS;
}

/* -- groups and loaders that are lost or leave --------------------------------------------------------------------- */

static mpidata_inlet *inlet_of(mpidata_incoming *in, int role, int number) {
    for (int i = 0; i < in->n_inlets; i++)
        if (mpidata_link_leader(&in->inlets[i]->link, &in->trainer->job.plan, role, number) >= 0) return in->inlets[i];
    return NULL;
}

static void drop_group(mpidata_incoming *in, mpidata_inlet *inlet, int group) {
    for (int i = 0; i < inlet->link.n_ranks * MPIDATA_STREAMS; i++) {
        if (inlet->sources[i].group != group) continue;
        inlet->sources[i].lost = 1;
        inlet->sources[i].assembly = NULL;
    }
    mpidata_lock_take(&in->trainer->lock);
    for (int chain = 0; chain < MPIDATA_ASSEMBLY_CHAINS; chain++)
        for (mpidata_assembly *assembly = in->assemblies.chains[chain], *next; assembly; assembly = next) {
            next = assembly->next;
            if (assembly->group != group || assembly->lost) continue;
            assembly->lost = 1;
            in->assemblies.lost++;
            if (!assembly->under_way) mpidata_drop_assembly_locked(in->trainer, &in->assemblies, assembly);
        }
    if (in->trainer->windows.plan) mpidata_windows_drop_group(&in->trainer->windows, group);
    mpidata_lock_give(&in->trainer->lock);
}

int mpidata_incoming_lose(mpidata_incoming *in, int role, int number) {
    mpidata_inlet *inlet = inlet_of(in, role, number);
    if (!inlet) return MPIDATA_SUCCESS;
    inlet->lost = inlet != in->inlets[0];
    if (role == MPIDATA_ROLE_SOLVER) drop_group(in, inlet, number);
    return MPIDATA_SUCCESS;
}

void mpidata_incoming_gone(mpidata_incoming *in, int role, int number) {
    mpidata_inlet *inlet = inlet_of(in, role, number);
    if (inlet && inlet != in->inlets[0]) inlet->gone = 1;
}
