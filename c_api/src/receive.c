/* The receive thread of a trainer: matches messages first and receives second, so that nothing is preposted and the
 * blocks land at their places in a slot without a copy. It makes all MPI calls of the trainer. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "trainer_state.h"
#include "wait.h"

enum { ACTIVE_MAX = 32, STREAMS = 2 };
#define STATUS_EVERY_S 0.2

/* What is still to come from one rank, per stream (training, validation): the block messages of its announced piece. */
typedef struct {
    mpidata_assembly *assembly; /* NULL: drop them */
    mpidata_block *blocks;
    int n_blocks, next, allocated;
} source;

typedef struct {
    mpidata_trainer *trainer;
    mpidata_assemblies assemblies;
    mpidata_agreement agreement;
    source *sources; /* STREAMS per rank of the world */
    char *message;   /* with headers; 8-byte aligned by malloc */
    int64_t simulation, step; /* of the last piece, for error messages; -1: none */
    size_t message_capacity;
    char *dropped; /* where unwanted blocks go */
    size_t dropped_capacity;
    MPI_Request requests[ACTIVE_MAX]; /* blocks under way, the first n_active */
    mpidata_assembly *active[ACTIVE_MAX];
    int n_active;
    int64_t expected_validation; /* validation simulations whose steps are known */
    int end_of_stream;
    mpidata_outgoing *sending;
    MPI_Request send_request;
    double next_status;
} receiver;

/* -- whole samples -------------------------------------------------------------------------------------------------- */

static int held(receiver *r, int64_t simulation) {
    mpidata_trainer *trainer = r->trainer;
    const mpidata_plan *plan = &trainer->job.plan;
    if (!mpidata_ledger_completed(&trainer->ledger, simulation)) return MPIDATA_SUCCESS;
    mpidata_event event = {.kind = MPIDATA_EVENT_HELD, .simulation = simulation};
    int status = mpidata_trainer_post(trainer, &event);
    if (simulation >= plan->simulations && trainer->ledger.validation_complete == plan->validation) {
        trainer->validation_whole = 1;
        (void)pthread_cond_broadcast(&trainer->news);
    }
    return status;
}

/* Under the lock. */
static int sample_whole(receiver *r, mpidata_assembly *assembly) {
    mpidata_trainer *trainer = r->trainer;
    mpidata_slot *slot = trainer->slots.slots[assembly->slot];
    slot->time = assembly->time;
    slot->simulation = assembly->simulation;
    slot->step = assembly->step;
    MPIDATA_TRY(mpidata_ledger_enter(&trainer->ledger, assembly->simulation, assembly->step));
    MPIDATA_TRY(mpidata_record_add(&trainer->record, &trainer->slots, assembly->slot));
    if (assembly->validation) {
        MPIDATA_TRY(mpidata_slots_append(&trainer->validation, &trainer->n_validation, &trainer->validation_allocated,
                                         assembly->slot));
        trainer->statistics.validation++;
    } else {
        MPIDATA_TRY(mpidata_slots_append(&trainer->arrived, &trainer->n_arrived, &trainer->arrived_allocated,
                                         assembly->slot));
        trainer->statistics.received++;
    }
    int64_t simulation = assembly->simulation;
    mpidata_assembly_free(&r->assemblies, assembly);
    return held(r, simulation);
}

/* Under the lock: wake a draw that can go on. With several trainers the agreement does so. */
static void tell_drawer(mpidata_trainer *trainer) {
    int final;
    if (!trainer->waiting || trainer->job.plan.trainers > 1) return;
    if (mpidata_trainer_guaranteed(trainer, &final) > trainer->drawn || final) (void)pthread_cond_broadcast(&trainer->news);
}

/* Under the lock: hand over what the buffer has room for. */
static void fill_buffer(receiver *r, int *did) {
    mpidata_trainer *trainer = r->trainer;
    int64_t n = 0;
    while (n < trainer->n_arrived && !mpidata_buffer_full(&trainer->buffer)) {
        int64_t evicted = mpidata_buffer_add(&trainer->buffer, trainer->arrived[n++]);
        if (evicted >= 0) mpidata_slots_give_back(&trainer->slots, evicted);
    }
    if (n) {
        trainer->n_arrived -= n;
        memmove(trainer->arrived, trainer->arrived + n, (size_t)trainer->n_arrived * sizeof *trainer->arrived);
        *did = 1;
    }
    if (r->end_of_stream && !trainer->buffer.ended && !trainer->n_arrived && !r->assemblies.count) {
        mpidata_buffer_end(&trainer->buffer);
        n = 1;
    }
    if (n) tell_drawer(trainer);
}

static int intake_open(receiver *r) {
    mpidata_trainer *trainer = r->trainer;
    (void)pthread_mutex_lock(&trainer->lock);
    int room = !trainer->n_arrived && !mpidata_buffer_full(&trainer->buffer);
    int open = mpidata_record_lets_in(&trainer->record, room) || trainer->stopping;
    (void)pthread_mutex_unlock(&trainer->lock);
    return open;
}

/* -- pieces --------------------------------------------------------------------------------------------------------- */

static int reserve(char **memory, size_t *capacity, size_t bytes) {
    if (bytes <= *capacity) return MPIDATA_SUCCESS;
    free(*memory);
    *capacity = 0;
    *memory = malloc(bytes);
    if (!*memory) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory: %zu bytes for a message", bytes);
    *capacity = bytes;
    return MPIDATA_SUCCESS;
}

static int find_or_begin(receiver *r, const mpidata_piece *piece, const double *parameters, int validation,
                         mpidata_assembly **assembly) {
    mpidata_trainer *trainer = r->trainer;
    *assembly = mpidata_assembly_find(&r->assemblies, piece->simulation, piece->step);
    if (*assembly) return MPIDATA_SUCCESS;
    (void)pthread_mutex_lock(&trainer->lock);
    int64_t slot = mpidata_slots_take(&trainer->slots);
    if (slot >= 0 && trainer->job.plan.n_parameters)
        memcpy(trainer->slots.slots[slot]->parameters, parameters,
               (size_t)trainer->job.plan.n_parameters * sizeof(double));
    (void)pthread_mutex_unlock(&trainer->lock);
    if (slot >= 0) *assembly = mpidata_assembly_new(&r->assemblies, piece->simulation, piece->step, slot);
    if (!*assembly)
        return mpidata_error(MPIDATA_ERR_MEMORY,
                             "Out of memory: no room for another sample of %zu bytes. Lower buffer.capacity in the job "
                             "file",
                             trainer->job.plan.slot_bytes);
    (*assembly)->validation = validation;
    return MPIDATA_SUCCESS;
}

static int unwanted(receiver *r, const mpidata_piece *piece) {
    mpidata_trainer *trainer = r->trainer;
    int stopping, duplicate = mpidata_ledger_has(&trainer->ledger, piece->simulation, piece->step);
    (void)pthread_mutex_lock(&trainer->lock);
    stopping = trainer->stopping;
    trainer->statistics.duplicates += duplicate && !stopping;
    (void)pthread_mutex_unlock(&trainer->lock);
    return stopping || duplicate;
}

static char *slot_fields(receiver *r, const mpidata_assembly *assembly) {
    (void)pthread_mutex_lock(&r->trainer->lock);
    char *fields = r->trainer->slots.slots[assembly->slot]->fields;
    (void)pthread_mutex_unlock(&r->trainer->lock);
    return fields;
}

static int finish_if_whole(receiver *r, mpidata_assembly *assembly) {
    if (!mpidata_assembly_whole(&r->assemblies, assembly)) return MPIDATA_SUCCESS;
    (void)pthread_mutex_lock(&r->trainer->lock);
    int status = sample_whole(r, assembly);
    (void)pthread_mutex_unlock(&r->trainer->lock);
    return status;
}

static int check_route(const receiver *r, const mpidata_piece *piece, int rank, int validation) {
    const mpidata_job *job = &r->trainer->job;
    int index, rank_in_group;
    if (mpidata_plan_role(&job->plan, rank, &index, &rank_in_group) != MPIDATA_ROLE_SOLVER ||
        mpidata_plan_trainer(&job->plan, piece->simulation, piece->step) != job->index ||
        validation != (piece->simulation >= job->plan.simulations))
        return mpidata_error(MPIDATA_ERR_WIRE, "A piece of simulation %lld, step %lld came to the wrong place",
                             (long long)piece->simulation, (long long)piece->step);
    return MPIDATA_SUCCESS;
}

static int expect_blocks(source *from, mpidata_assembly *assembly, const mpidata_block *blocks, int n) {
    if (n > from->allocated) {
        void *grown = realloc(from->blocks, (size_t)n * sizeof *from->blocks);
        if (!grown) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory in the trainer's receive thread");
        from->blocks = grown;
        from->allocated = n;
    }
    memcpy(from->blocks, blocks, (size_t)n * sizeof *blocks);
    from->assembly = assembly;
    from->n_blocks = n;
    from->next = 0;
    return MPIDATA_SUCCESS;
}

static int take_blocks_from_header(receiver *r, mpidata_assembly *assembly, const mpidata_block *blocks, int n,
                                   const char *payload) {
    char *fields = slot_fields(r, assembly);
    for (int i = 0; i < n; i++) {
        const mpidata_field *field = &r->trainer->job.plan.fields[blocks[i].field];
        mpidata_block_copy(field, &blocks[i], fields + field->offset, payload);
        payload += (size_t)mpidata_block_elements(&blocks[i]) * field->element_size;
        assembly->outstanding--;
    }
    return finish_if_whole(r, assembly);
}

static int take_piece(receiver *r, source *from, int rank, int validation, const char *message, size_t *bytes) {
    const mpidata_piece *piece;
    const double *parameters;
    const mpidata_block *blocks;
    const char *payload;
    mpidata_assembly *assembly = NULL;
    const mpidata_plan *plan = &r->trainer->job.plan;
    MPIDATA_TRY(mpidata_piece_check(plan, message, *bytes, &piece, &parameters, &blocks, &payload));
    *bytes = mpidata_piece_bytes(plan->n_parameters, piece->n_blocks, piece->inline_bytes);
    r->simulation = piece->simulation;
    r->step = piece->step;
    MPIDATA_TRY(check_route(r, piece, rank, validation));
    if (unwanted(r, piece))
        return piece->inline_bytes ? MPIDATA_SUCCESS : expect_blocks(from, NULL, blocks, piece->n_blocks);
    MPIDATA_TRY(find_or_begin(r, piece, parameters, validation, &assembly));
    if (rank < assembly->first_rank) {
        assembly->first_rank = rank;
        assembly->time = piece->time;
    }
    for (int i = 0; i < piece->n_blocks; i++)
        MPIDATA_TRY(mpidata_assembly_announce(&r->assemblies, assembly, &blocks[i], rank));
    (void)pthread_mutex_lock(&r->trainer->lock);
    r->trainer->statistics.bytes += piece->inline_bytes;
    (void)pthread_mutex_unlock(&r->trainer->lock);
    if (piece->inline_bytes) return take_blocks_from_header(r, assembly, blocks, piece->n_blocks, payload);
    return expect_blocks(from, assembly, blocks, piece->n_blocks);
}

/* A message with the header of one large piece, or with small pieces. */
static int receive_pieces(receiver *r, source *from, MPI_Message *message, const MPI_Status *status, int validation) {
    int bytes = 0;
    MPIDATA_TRY_MPI(MPI_Get_count(status, MPI_BYTE, &bytes));
    size_t header = mpidata_piece_header_bytes(r->trainer->job.plan.n_parameters, MPIDATA_BLOCKS_MAX);
    r->simulation = r->step = -1;
    if (bytes <= 0 || (size_t)bytes > header + MPIDATA_BUNDLE_MAX)
        return mpidata_error(MPIDATA_ERR_WIRE, "A message of %d bytes has no pieces", bytes);
    MPIDATA_TRY(reserve(&r->message, &r->message_capacity, (size_t)bytes));
    MPIDATA_TRY_MPI(MPI_Mrecv(r->message, bytes, MPI_BYTE, message, MPI_STATUS_IGNORE));
    for (size_t at = 0, left; (left = (size_t)bytes - at) > 0; at += left)
        MPIDATA_TRY(take_piece(r, from, status->MPI_SOURCE, validation, r->message + at, &left));
    return MPIDATA_SUCCESS;
}

static int receive_in_place(receiver *r, const mpidata_field *field, const mpidata_block *block, char *target,
                            MPI_Message *message) {
    int64_t offset;
    MPI_Datatype element = mpidata_dtype_mpi(field->dtype), type;
    MPI_Request *request = &r->requests[r->n_active];
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

static int receive_block(receiver *r, source *from, MPI_Message *message, const MPI_Status *status) {
    const mpidata_block *block = &from->blocks[from->next++];
    const mpidata_field *field = &r->trainer->job.plan.fields[block->field];
    int elements = 0;
    int64_t expected = mpidata_block_elements(block);
    MPIDATA_TRY_MPI(MPI_Get_count(status, mpidata_dtype_mpi(field->dtype), &elements));
    if (elements != expected)
        return mpidata_error(MPIDATA_ERR_WIRE, "A block of field '%s' has %d elements instead of the announced %lld",
                             field->name, elements, (long long)expected);
    if (!from->assembly) {
        size_t bytes = (size_t)expected * field->element_size;
        MPIDATA_TRY(reserve(&r->dropped, &r->dropped_capacity, bytes));
        MPIDATA_TRY_MPI(MPI_Mrecv(r->dropped, elements, mpidata_dtype_mpi(field->dtype), message, MPI_STATUS_IGNORE));
        return MPIDATA_SUCCESS;
    }
    MPIDATA_TRY(receive_in_place(r, field, block, slot_fields(r, from->assembly) + field->offset, message));
    r->active[r->n_active++] = from->assembly;
    (void)pthread_mutex_lock(&r->trainer->lock);
    r->trainer->statistics.bytes += expected * (int64_t)field->element_size;
    (void)pthread_mutex_unlock(&r->trainer->lock);
    return MPIDATA_SUCCESS;
}

static int name_sender(const receiver *r, int rank, int status) {
    char text[MPIDATA_TEXT_MAX], who[128];
    memcpy(text, mpidata_last_error(), sizeof text);
    mpidata_job_who(&r->trainer->job, rank, who, sizeof who);
    if (r->simulation >= 0 && status != MPIDATA_ERR_WIRE)
        return mpidata_error(status, "%.1500s. %s, simulation %lld, step %lld. Put each element of each field exactly once.",
                             text, who, (long long)r->simulation, (long long)r->step);
    return mpidata_error(status, "%.1500s. %s sent it. Use one build of libmpidata for the whole job.", text, who);
}

/* Take messages of one stream until there are none, or too many blocks are under way. */
static int take_pieces(receiver *r, int tag, int *did) {
    MPI_Comm data = r->trainer->job.data;
    int validation = tag == MPIDATA_TAG_VALIDATION;
    for (int n = 0; n < ACTIVE_MAX && r->n_active < ACTIVE_MAX; n++) {
        int here = 0;
        MPI_Message message;
        MPI_Status status;
        if (n % 8 == 0 && !validation && !intake_open(r)) break;
        MPIDATA_TRY_MPI(MPI_Improbe(MPI_ANY_SOURCE, tag, data, &here, &message, &status));
        if (!here) break;
        *did = 1;
        source *from = &r->sources[STREAMS * status.MPI_SOURCE + validation];
        int result = from->next < from->n_blocks ? receive_block(r, from, &message, &status)
                                                 : receive_pieces(r, from, &message, &status, validation);
        if (result) return name_sender(r, status.MPI_SOURCE, result);
    }
    return MPIDATA_SUCCESS;
}

static int complete_blocks(receiver *r, int *did) {
    if (!r->n_active) return MPIDATA_SUCCESS;
    int done[ACTIVE_MAX], n_done = 0, kept = 0, n_active = r->n_active;
    mpidata_assembly *finished[ACTIVE_MAX];
    MPIDATA_TRY_MPI(MPI_Testsome(n_active, r->requests, &n_done, done, MPI_STATUSES_IGNORE));
    if (n_done <= 0) return MPIDATA_SUCCESS;
    *did = 1;
    for (int i = 0; i < n_done; i++) finished[i] = r->active[done[i]];
    for (int i = 0; i < n_active; i++) {
        if (r->requests[i] == MPI_REQUEST_NULL) continue;
        r->requests[kept] = r->requests[i];
        r->active[kept++] = r->active[i];
    }
    r->n_active = kept;
    for (int i = 0; i < n_done; i++) {
        finished[i]->outstanding--;
        MPIDATA_TRY(finish_if_whole(r, finished[i]));
    }
    return MPIDATA_SUCCESS;
}

/* -- scheduler ------------------------------------------------------------------------------------------------------ */

static int obey(receiver *r, const mpidata_order *order) {
    mpidata_trainer *trainer = r->trainer;
    const mpidata_plan *plan = &trainer->job.plan;
    switch (order->kind) {
    case MPIDATA_ORDER_EXPECT:
        if (order->simulation < 0 || order->simulation >= plan->simulations + plan->validation || order->steps < 0) break;
        mpidata_ledger_expect(&trainer->ledger, order->simulation, order->steps);
        return held(r, order->simulation);
    case MPIDATA_ORDER_END_OF_STREAM: r->end_of_stream = 1; return MPIDATA_SUCCESS;
    case MPIDATA_ORDER_STOP:
        trainer->stopping = 1;
        trainer->n_arrived = 0;
        (void)pthread_cond_broadcast(&trainer->news);
        return MPIDATA_SUCCESS;
    case MPIDATA_ORDER_RELIEVE:
        if (order->steps < 0 || mpidata_buffer_grow(&trainer->buffer, trainer->buffer.capacity + order->steps)) break;
        return MPIDATA_SUCCESS;
    case MPIDATA_ORDER_CHECKPOINT: mpidata_checkpoint_want(trainer, order->steps); return MPIDATA_SUCCESS;
    case MPIDATA_ORDER_ALL_GONE:
        trainer->all_gone = 1;
        (void)pthread_cond_broadcast(&trainer->news);
        return MPIDATA_SUCCESS;
    default: break;
    }
    return mpidata_error(MPIDATA_ERR_WIRE, "The scheduler sent an order (%d) that does not fit the job.",
                         (int)order->kind);
}

static int take_orders(receiver *r, int *did) {
    for (;;) {
        int here = 0;
        MPI_Message message;
        MPI_Status status;
        mpidata_order order = {0};
        MPIDATA_TRY_MPI(MPI_Improbe(0, MPIDATA_TAG_ORDER, r->trainer->job.data, &here, &message, &status));
        if (!here) return MPIDATA_SUCCESS;
        *did = 1;
        MPIDATA_TRY_MPI(MPI_Mrecv(&order, (int)sizeof order, MPI_BYTE, &message, MPI_STATUS_IGNORE));
        (void)pthread_mutex_lock(&r->trainer->lock);
        int result = obey(r, &order);
        (void)pthread_mutex_unlock(&r->trainer->lock);
        MPIDATA_TRY(result);
    }
}

static int post_status(receiver *r) {
    mpidata_trainer *trainer = r->trainer;
    double now = mpidata_now();
    if (now < r->next_status) return MPIDATA_SUCCESS;
    r->next_status = now + STATUS_EVERY_S;
    (void)pthread_mutex_lock(&trainer->lock);
    int status = mpidata_trainer_post_status(trainer);
    (void)pthread_mutex_unlock(&trainer->lock);
    return status;
}

static int send_events(receiver *r, int *did) {
    mpidata_trainer *trainer = r->trainer;
    for (;;) {
        if (r->sending) {
            int done = 0;
            MPIDATA_TRY_MPI(MPI_Test(&r->send_request, &done, MPI_STATUS_IGNORE));
            if (!done) return MPIDATA_SUCCESS;
            free(r->sending);
            *did = 1;
        }
        (void)pthread_mutex_lock(&trainer->lock);
        r->sending = trainer->outbox;
        if (r->sending && !(trainer->outbox = r->sending->next)) trainer->outbox_end = &trainer->outbox;
        (void)pthread_mutex_unlock(&trainer->lock);
        if (!r->sending) return MPIDATA_SUCCESS;
        MPIDATA_TRY_MPI(MPI_Isend(&r->sending->event, (int)mpidata_event_bytes(&r->sending->event), MPI_BYTE, 0,
                                  MPIDATA_TAG_EVENT, trainer->job.data, &r->send_request));
    }
}

/* -- thread --------------------------------------------------------------------------------------------------------- */

static int one_round(receiver *r, int *did) {
    MPIDATA_TRY(take_orders(r, did));
    MPIDATA_TRY(take_pieces(r, MPIDATA_TAG_VALIDATION, did));
    MPIDATA_TRY(take_pieces(r, MPIDATA_TAG_SAMPLE, did));
    MPIDATA_TRY(complete_blocks(r, did));
    (void)pthread_mutex_lock(&r->trainer->lock);
    fill_buffer(r, did);
    (void)pthread_mutex_unlock(&r->trainer->lock);
    MPIDATA_TRY(mpidata_agree(r->trainer, &r->agreement, did));
    MPIDATA_TRY(post_status(r));
    return send_events(r, did);
}

static void pause_until_woken(mpidata_trainer *trainer, long sleep_ns) {
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += sleep_ns;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    (void)pthread_mutex_lock(&trainer->lock);
    if (!trainer->woken) (void)pthread_cond_timedwait(&trainer->wake, &trainer->lock, &until);
    trainer->woken = 0;
    (void)pthread_mutex_unlock(&trainer->lock);
}

static int open_receiver(receiver *r, mpidata_trainer *trainer) {
    memset(r, 0, sizeof *r);
    r->trainer = trainer;
    mpidata_assemblies_open(&r->assemblies, &trainer->job.plan);
    r->sources = calloc((size_t)trainer->job.plan.world * STREAMS, sizeof *r->sources);
    if (!r->sources) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory in the trainer's receive thread.");
    return MPIDATA_SUCCESS;
}

static void close_receiver(receiver *r) {
    for (int i = 0; r->sources && i < r->trainer->job.plan.world * STREAMS; i++) free(r->sources[i].blocks);
    free(r->sources);
    free(r->message);
    free(r->dropped);
    free(r->sending);
    mpidata_assemblies_close(&r->assemblies);
}

/* After an error: tell the scheduler, then only send what is queued until the job is ended. */
static void serve_failed(receiver *r, int status) {
    mpidata_trainer *trainer = r->trainer;
    (void)pthread_mutex_lock(&trainer->lock);
    mpidata_trainer_fail(trainer, status);
    (void)pthread_mutex_unlock(&trainer->lock);
    for (int did = 0; !trainer->all_gone && !send_events(r, &did) && !take_orders(r, &did);)
        pause_until_woken(trainer, 1000000);
}

void *mpidata_receive_thread(void *argument) {
    receiver receiver_state, *r = &receiver_state;
    mpidata_trainer *trainer = argument;
    /* Short sleeps are meant: the kernel's usual slack of 50 us would double them. */
    (void)prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
    mpidata_backoff backoff = {0};
    int status = open_receiver(r, trainer);
    while (!status && !trainer->all_gone) {
        int did = 0;
        status = one_round(r, &did);
        if (did) {
            backoff.idle = 0;
            continue;
        }
        long sleep_ns = mpidata_backoff_next(&backoff);
        if (sleep_ns)
            pause_until_woken(trainer, sleep_ns);
        else
            (void)sched_yield();
    }
    if (status) serve_failed(r, status);
    close_receiver(r);
    (void)pthread_mutex_lock(&trainer->lock);
    trainer->thread_done = 1;
    (void)pthread_cond_broadcast(&trainer->news);
    (void)pthread_mutex_unlock(&trainer->lock);
    return NULL;
}
