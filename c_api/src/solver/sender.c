#include "solver/sender.h"

#include <stdlib.h>
#include <string.h>

#include "base/wait.h"
#include "buffer/copy.h"
#include "calls/maps.h"
#include "calls/values/copy_in.h"
#include "containers/array.h"
#include "dtypes/convert.h"
#include "dtypes/indices.h"

static const double MEET_S = 0.1;
/* A sample that comes within HURRY_S of the previous one waits for more, until a bundle has MPIDATA_BUNDLE_WORTH bytes or is
 * LONGEST_S old: with messages of one or two samples, ranks that share a core would spend their time switching. */
static const double HURRY_S = 1e-4, LONGEST_S = 2e-4;

static int no_memory(size_t bytes) {
    return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory: %zu bytes for messages", bytes);
}

/* Make room for `bytes`, and keep the first `used`. Earlier memory is not reused until the end: because each growth at least
 * doubles the size, all of it together is less than the current memory. */
static int reserve(mpidata_sender *sender, char **memory, size_t *capacity, size_t used, size_t bytes) {
    if (bytes <= *capacity) return MPIDATA_SUCCESS;
    if (bytes < 2 * *capacity) bytes = 2 * *capacity;
    char *grown = mpidata_arena_take(&sender->arena, bytes);
    if (!grown) return no_memory(bytes);
    if (used) memcpy(grown, *memory, used);
    *memory = grown;
    *capacity = bytes;
    return MPIDATA_SUCCESS;
}

/* Bytes of this rank's part of a sample, if all ranks of its group have as much. */
static size_t rank_part(const mpidata_plan *plan) { return plan->slot_bytes / (size_t)plan->ranks_per_group; }

int mpidata_sender_open(mpidata_sender *sender, mpidata_job *job) {
    memset(sender, 0, sizeof *sender);
    sender->job = job;
    sender->filling = -1;
    sender->second = job->plan.trainers_at_least && job->plan.validation ? job->plan.in_flight : 0;
    sender->n_pieces = job->plan.in_flight + sender->second;
    size_t n = (size_t)sender->n_pieces + 3, trainers = (size_t)job->plan.trainers;
    sender->pieces = calloc(n, sizeof *sender->pieces);
    sender->met = calloc(trainers, 1);
    if (!sender->pieces || !sender->met) return no_memory(n * sizeof *sender->pieces + trainers);
    if (job->plan.trainers_at_least && !(job->dead_trainers = calloc(trainers, 1))) return no_memory(trainers);
    for (int t = 0; job->dead_trainers && t < job->plan.trainers; t++)
        job->dead_trainers[t] = mpidata_job_trainer_rank(job, t) < 0;
    if (job->plan.n_constants && !(sender->constants.sent = calloc(trainers, 1))) return no_memory(trainers);
    if (rank_part(&job->plan) > MPIDATA_PIECE_SMALL) return MPIDATA_SUCCESS; /* fields with lengths count as 0 */
    sender->bundles = calloc(trainers, sizeof *sender->bundles);
    return sender->bundles ? MPIDATA_SUCCESS : no_memory(trainers * sizeof *sender->bundles);
}

void mpidata_sender_release_maps(mpidata_staged_piece *piece) {
    for (int i = 0; i < piece->n_blocks; i++)
        if (piece->blocks[i].map) mpidata_map_let_go(piece->blocks[i].map);
    piece->n_maps = 0;
}

void mpidata_sender_close(mpidata_sender *sender) {
    for (int i = 0; sender->pieces && i < sender->n_pieces + 3; i++) {
        mpidata_sender_release_maps(&sender->pieces[i]);
        free(sender->pieces[i].blocks);
        free(sender->pieces[i].moments);
    }
    free(sender->flight.of);
    free(sender->flight.done);
    free(sender->flight.statuses);
    free(sender->bundles);
    free(sender->met);
    free(sender->constants.sent);
    free(sender->pieces);
    if (!sender->flight.n) { /* else, after a misuse, MPI still reads messages in flight */
        free(sender->flight.requests);
        mpidata_arena_close(&sender->arena);
    }
    memset(sender, 0, sizeof *sender);
    sender->filling = -1;
}

static void piece_empty(mpidata_staged_piece *piece) {
    if (piece->n_maps) mpidata_sender_release_maps(piece);
    piece->under_way = 0;
    piece->n_blocks = 0;
    piece->n_moments = 0;
    piece->payload_bytes = 0;
}

static int free_piece(const mpidata_sender *sender) {
    const int end = sender->second && !mpidata_sender_pool(sender) ? sender->second : sender->n_pieces;
    for (int i = mpidata_sender_pool(sender) ? sender->second : 0; i < end; i++)
        if (!sender->pieces[i].under_way) return i;
    return -1;
}

static int reserve_request(mpidata_flight *flight) {
    if (flight->n < flight->allocated) return MPIDATA_SUCCESS;
    int64_t n = mpidata_array_room(flight->allocated, flight->n + 1, 16);
    if (!mpidata_array_resize(&flight->requests, n, sizeof *flight->requests) ||
        !mpidata_array_resize(&flight->of, n, sizeof *flight->of) ||
        !mpidata_array_resize(&flight->done, n, sizeof *flight->done) ||
        !mpidata_array_resize(&flight->statuses, n, sizeof *flight->statuses))
        return no_memory((size_t)n * sizeof *flight->statuses);
    flight->allocated = n;
    return MPIDATA_SUCCESS;
}

typedef int (*send_function)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

/* Start to send to a trainer. A message for a dead one is not sent, and counts as received: if the others continue, its data is
 * simulated again. */
static int begin_send(mpidata_sender *sender, int trainer, send_function send, const void *values, int count, MPI_Datatype type,
                      int tag) {
    MPI_Request *request = &sender->flight.requests[sender->flight.n];
    const int rank = mpidata_job_trainer_rank(sender->job, trainer);
    int status = MPIDATA_SUCCESS;
    if (!sender->job->dead_trainers || !sender->job->dead_trainers[trainer])
        status = mpidata_check_mpi(send(values, count, type, rank, tag, sender->job->data, request), "MPI_Issend");
    if (!sender->job->dead_trainers || (status && status != MPIDATA_ERR_DIED)) return status;
    if (status) sender->job->dead_trainers[trainer] = 1;
    if (sender->job->dead_trainers[trainer])
        MPIDATA_TRY_MPI(MPI_Isend(values, count, type, MPI_PROC_NULL, tag, sender->job->data, request));
    return MPIDATA_SUCCESS;
}

/* Send one message of a piece. */
static int send_message(mpidata_sender *sender, int number, int trainer, send_function send, const void *values, int count,
                        MPI_Datatype type) {
    mpidata_flight *flight = &sender->flight;
    mpidata_staged_piece *piece = &sender->pieces[number];
    MPIDATA_TRY(reserve_request(flight));
    MPIDATA_TRY(begin_send(sender, trainer, send, values, count, type, sender->tag));
    flight->of[flight->n].trainer = trainer;
    flight->of[flight->n].map = NULL;
    flight->of[flight->n++].piece = number;
    piece->under_way++;
    return MPIDATA_SUCCESS;
}

int mpidata_sender_send_map(mpidata_sender *sender, int trainer, int validation, mpidata_map *map) {
    const int tag = validation ? MPIDATA_TAG_VALIDATION : MPIDATA_TAG_SAMPLE;
    mpidata_flight *flight = &sender->flight;
    const size_t bytes = sizeof *map->message + (size_t)map->message->count * sizeof *map->indices;
    MPIDATA_TRY(reserve_request(flight));
    MPIDATA_TRY(begin_send(sender, trainer, MPI_Issend, map->message, (int)bytes, MPI_BYTE, tag));
    flight->of[flight->n].trainer = trainer;
    flight->of[flight->n++].map = map;
    mpidata_map_hold(map);
    return MPIDATA_SUCCESS;
}

/* Send a bundle, and replace its memory by that of a free piece. */
static int send_bundle(mpidata_sender *sender, int trainer, int number) {
    mpidata_bundle *bundle = &sender->bundles[trainer];
    mpidata_staged_piece *piece = &sender->pieces[number];
    char *memory = piece->header;
    size_t capacity = piece->header_capacity;
    piece->header = bundle->memory;
    piece->header_capacity = bundle->capacity;
    piece->trainers[0] = trainer;
    piece->n_trainers = 1;
    MPIDATA_TRY(send_message(sender, number, trainer, MPI_Issend, piece->header, (int)bundle->bytes, MPI_BYTE));
    bundle->memory = memory;
    bundle->capacity = capacity;
    bundle->bytes = 0;
    bundle->in_flight[mpidata_sender_pool(sender)]++;
    return MPIDATA_SUCCESS;
}

/* Whether to try to send a bundle to which `added` bytes were just added. */
static int is_due(const mpidata_sender *sender, const mpidata_bundle *bundle, size_t added) {
    return !sender->hurried || bundle->bytes / MPIDATA_BUNDLE_WORTH > (bundle->bytes - added) / MPIDATA_BUNDLE_WORTH ||
           sender->committed - bundle->since > LONGEST_S;
}

/* Send the bundles whose trainers have nothing in flight. */
static int send_idle_bundles(mpidata_sender *sender) {
    for (int t = 0; sender->bundles && t < sender->job->plan.trainers; t++) {
        int number;
        if (!sender->bundles[t].bytes || sender->bundles[t].in_flight[mpidata_sender_pool(sender)]) continue;
        if ((number = free_piece(sender)) < 0) return MPIDATA_SUCCESS;
        MPIDATA_TRY(send_bundle(sender, t, number));
    }
    return MPIDATA_SUCCESS;
}

static void message_taken(mpidata_sender *sender, int number) {
    mpidata_staged_piece *piece = &sender->pieces[number];
    const int pool = sender->second && number >= sender->second;
    if (--piece->under_way || number > sender->n_pieces) return;
    piece_empty(piece);
    for (int i = 0; sender->bundles && i < piece->n_trainers; i++) sender->bundles[piece->trainers[i]].in_flight[pool]--;
}

/* Messages in flight to a dead trainer never arrive: drop them. */
static void drop_what_is_for_the_dead(mpidata_sender *sender) {
    mpidata_flight *flight = &sender->flight;
    for (int i = 0; i < flight->n; i++) {
        if (!sender->job->dead_trainers[flight->of[i].trainer]) continue;
        (void)MPI_Request_free(&flight->requests[i]);
        flight->requests[i] = MPI_REQUEST_NULL;
        if (flight->of[i].map)
            mpidata_map_let_go(flight->of[i].map);
        else
            message_taken(sender, flight->of[i].piece);
    }
    flight->n = mpidata_keep_under_way(flight->n, flight->requests, flight->of, sizeof *flight->of);
}

/* Requests fail only if their trainer has died. */
static int test_flight(mpidata_sender *sender, int *n_done) {
    mpidata_flight *flight = &sender->flight;
    MPIDATA_TRY(mpidata_test_some(flight->n, flight->requests, n_done, flight->done, flight->statuses));
    for (int i = 0; i < *n_done; i++) {
        if (flight->statuses[i].MPI_ERROR == MPI_SUCCESS) continue;
        const int trainer = flight->of[flight->done[i]].trainer;
        if (!sender->job->dead_trainers) return mpidata_error(MPIDATA_ERR_DIED, "Trainer %d has died.", trainer);
        sender->job->dead_trainers[trainer] = 1;
        flight->requests[flight->done[i]] = MPI_REQUEST_NULL;
    }
    return MPIDATA_SUCCESS;
}

int mpidata_sender_progress(mpidata_sender *sender) {
    mpidata_flight *flight = &sender->flight;
    int n_done;
    if (sender->job->dead_trainers) drop_what_is_for_the_dead(sender);
    MPIDATA_TRY(test_flight(sender, &n_done));
    if (!n_done) return MPIDATA_SUCCESS;
    for (int i = 0; i < n_done; i++) {
        mpidata_map *map = flight->of[flight->done[i]].map;
        if (map)
            mpidata_map_let_go(map);
        else
            message_taken(sender, flight->of[flight->done[i]].piece);
    }
    flight->n = mpidata_keep_under_way(flight->n, flight->requests, flight->of, sizeof *flight->of);
    return send_idle_bundles(sender);
}

int mpidata_sender_wait(void *context) {
    mpidata_sender *sender = context;
    MPIDATA_TRY(mpidata_job_listen(sender->job));
    if (sender->meanwhile) MPIDATA_TRY(sender->meanwhile(sender->of));
    MPIDATA_TRY(mpidata_sender_progress(sender));
    return send_idle_bundles(sender); /* nothing will be added to them */
}

static int wait_for_free_piece(mpidata_sender *sender, int *number) {
    mpidata_backoff backoff = {0};
    if ((*number = free_piece(sender)) >= 0) return MPIDATA_SUCCESS;
    MPIDATA_TRY(mpidata_sender_progress(sender));
    if ((*number = free_piece(sender)) >= 0) return MPIDATA_SUCCESS;
    double since = mpidata_now();
    while ((*number = free_piece(sender)) < 0) {
        mpidata_backoff_pause(&backoff);
        mpidata_job_waits(sender->job, since);
        MPIDATA_TRY(mpidata_sender_wait(sender));
    }
    sender->waited += mpidata_now() - since;
    return MPIDATA_SUCCESS;
}

static int begin_piece(mpidata_sender *sender) {
    if (sender->filling >= 0) return MPIDATA_SUCCESS;
    sender->filling = sender->n_pieces;
    return sender->bundles ? MPIDATA_SUCCESS : wait_for_free_piece(sender, &sender->filling);
}

int mpidata_sender_flush_to(mpidata_sender *sender, int trainer) {
    int number;
    if (!sender->bundles || !sender->bundles[trainer].bytes) return MPIDATA_SUCCESS;
    MPIDATA_TRY(wait_for_free_piece(sender, &number)); /* which may also send it */
    return sender->bundles[trainer].bytes ? send_bundle(sender, trainer, number) : MPIDATA_SUCCESS;
}

int mpidata_sender_flush(mpidata_sender *sender) {
    for (int t = 0; t < sender->job->plan.trainers; t++) MPIDATA_TRY(mpidata_sender_flush_to(sender, t));
    return MPIDATA_SUCCESS;
}

static int reserve_block(mpidata_staged_piece *piece) {
    if (piece->n_blocks < piece->blocks_capacity) return MPIDATA_SUCCESS;
    if (piece->n_blocks == MPIDATA_BLOCKS_MAX)
        return mpidata_error(MPIDATA_ERR_BLOCK, "A rank may put at most %d blocks in one step", MPIDATA_BLOCKS_MAX);
    if (mpidata_array_reserve(&piece->blocks, &piece->blocks_capacity, piece->n_blocks + 1, 4, sizeof *piece->blocks))
        return MPIDATA_SUCCESS;
    return no_memory(2 * (size_t)piece->blocks_capacity * sizeof *piece->blocks);
}

static int reserve_moments(mpidata_staged_piece *piece, int64_t n) {
    const int64_t all = piece->n_moments + n;
    if (mpidata_array_reserve(&piece->moments, &piece->moments_capacity, all, n, sizeof *piece->moments)) return MPIDATA_SUCCESS;
    return no_memory((size_t)all * sizeof *piece->moments);
}

/* The way to copy values of this size; NULL: they are copied once more. */
static mpidata_copy_choice *choice_of_copy(mpidata_sender *sender, size_t bytes) {
    return bytes > (sender->bundles ? MPIDATA_PIECE_SMALL : MPIDATA_BLOCK_SMALL) ? &sender->copies : NULL;
}

/* Make indices count from 0, and note the least and the greatest for the trainer to compare with their length. */
static void count_from_zero(const mpidata_field *field, void *target, int64_t elements, mpidata_block *block) {
    if (!elements) return;
    mpidata_shift_indices(field->element_size, target, elements, -field->base);
    mpidata_range_of_indices(field->element_size, target, elements, &block->start[MPIDATA_LEAST],
                             &block->start[MPIDATA_GREATEST]);
}

static size_t likely_payload(const mpidata_sender *sender) {
    const mpidata_plan *plan = &sender->job->plan;
    return rank_part(plan) + (size_t)plan->n_fields * MPIDATA_BOUNDARY;
}

int mpidata_sender_stage(mpidata_sender *sender, const mpidata_block *block, const mpidata_put_arguments *put, int lend) {
    const mpidata_field *field = &sender->job->plan.fields[block->field];
    int64_t elements = mpidata_block_elements(block);
    const int counts = field->index_of >= 0, as_they_are = !put->device.driver && !mpidata_conversion(put->dtype, field->dtype);
    if (!field->per_simulation) MPIDATA_TRY(begin_piece(sender));
    mpidata_staged_piece *piece = mpidata_sender_piece(sender, field);
    int64_t n_moments = mpidata_block_moments(&sender->job->plan, block);
    MPIDATA_TRY(reserve_block(piece));
    MPIDATA_TRY(reserve_moments(piece, n_moments));
    mpidata_staged_block *staged = &piece->blocks[piece->n_blocks];
    staged->block = *block;
    staged->map = NULL;
    staged->bytes = (size_t)elements * field->element_size;
    staged->lent = lend && as_they_are && !counts && !field->per_simulation && elements ? put->values : NULL;
    staged->offset = (piece->payload_bytes + 63) & ~(size_t)63;
    /* Before the copy past the cache, because this loads the values into the cache. */
    if (n_moments && as_they_are) mpidata_moments_of_block(field, block->shape, put->values, piece->moments + piece->n_moments);
    if (staged->lent) mpidata_lent_note(&sender->lent, put->values, staged->bytes);
    if (!staged->lent) {
        size_t bytes = staged->offset + staged->bytes;
        if (bytes > piece->payload_capacity && !field->per_simulation && bytes < likely_payload(sender)) bytes = likely_payload(sender);
        MPIDATA_TRY(reserve(sender, &piece->payload, &piece->payload_capacity, piece->payload_bytes, bytes));
        char *target = piece->payload + staged->offset;
        MPIDATA_TRY(mpidata_copy_in(target, put, field->dtype, staged->bytes, counts ? NULL : choice_of_copy(sender, staged->bytes)));
        if (counts) count_from_zero(field, target, elements, &staged->block);
        piece->payload_bytes = staged->offset + staged->bytes;
    }
    if (n_moments && !as_they_are)
        mpidata_moments_of_block(field, block->shape, piece->payload + staged->offset, piece->moments + piece->n_moments);
    piece->n_moments += n_moments;
    piece->n_blocks++;
    return MPIDATA_SUCCESS;
}

void mpidata_sender_drop(mpidata_sender *sender) {
    if (sender->filling >= 0) piece_empty(&sender->pieces[sender->filling]);
    sender->filling = -1;
    sender->constants.over = 1;
}

static const char *block_values(const mpidata_staged_piece *piece, const mpidata_staged_block *staged) {
    return staged->lent ? staged->lent : piece->payload + staged->offset;
}

static size_t bytes_of_blocks(const mpidata_staged_piece *piece) {
    size_t bytes = 0;
    for (int i = 0; i < piece->n_blocks; i++) bytes += piece->blocks[i].bytes;
    return bytes;
}

/* Decide which blocks travel along; returns the bytes of the payload. */
static size_t lay_out_payload(mpidata_staged_piece *piece) {
    mpidata_walk walk = {.in_all = bytes_of_blocks(piece)};
    for (int i = 0; i < piece->n_blocks; i++) {
        mpidata_staged_block *staged = &piece->blocks[i];
        staged->along = mpidata_walk_on(&walk, staged->bytes);
        staged->place = walk.place;
    }
    return mpidata_padded(walk.end);
}

static void write_payload(const mpidata_staged_piece *piece, mpidata_copy_choice *copies, char *target, size_t bytes) {
    size_t end = 0;
    for (int i = 0; i < piece->n_blocks; i++) {
        const mpidata_staged_block *staged = &piece->blocks[i];
        if (!staged->along) continue;
        memset(target + end, 0, staged->place - end);
        (void)mpidata_copy_to_other(copies, target + staged->place, block_values(piece, staged), staged->bytes);
        end = staged->place + staged->bytes;
    }
    memset(target + end, 0, bytes - end);
}

/* Write the header, followed by the payload, to `target`. */
static void write_piece(const mpidata_staged_piece *piece, const mpidata_piece *head, const double *parameters, int n_parameters,
                        mpidata_copy_choice *copies, char *target) {
    size_t at = sizeof *head, header = mpidata_piece_header_bytes(n_parameters, piece->n_blocks, piece->n_moments);
    size_t moments = (size_t)piece->n_moments * sizeof *piece->moments;
    memcpy(target, head, sizeof *head);
    if (n_parameters) memcpy(target + at, parameters, (size_t)n_parameters * sizeof(double));
    at += (size_t)n_parameters * sizeof(double);
    for (int i = 0; i < piece->n_blocks; i++, at += sizeof(mpidata_block))
        memcpy(target + at, &piece->blocks[i].block, sizeof(mpidata_block));
    if (moments) memcpy(target + at, piece->moments, moments);
    memset(target + at + moments, 0, header - at - moments);
    write_payload(piece, copies, target + header, (size_t)head->payload_bytes);
}

static int commit_bundled(mpidata_sender *sender, const mpidata_staged_piece *piece, const mpidata_piece *head,
                          const double *parameters, int trainer) {
    int n_parameters = sender->job->plan.n_parameters, number;
    mpidata_bundle *bundle = &sender->bundles[trainer];
    size_t bytes = mpidata_piece_bytes(n_parameters, head->n_blocks, piece->n_moments, head->payload_bytes);
    while (bundle->bytes && bundle->bytes + bytes > MPIDATA_BUNDLE_MAX) {
        MPIDATA_TRY(wait_for_free_piece(sender, &number));
        if (bundle->bytes) MPIDATA_TRY(send_bundle(sender, trainer, number));
    }
    if (bundle->bytes + bytes > bundle->capacity) {
        /* A slow solver needs room for one piece, a fast one for as many as possible. */
        size_t capacity = bundle->bytes + bytes;
        if (bundle->capacity && capacity < MPIDATA_BUNDLE_MAX) capacity = MPIDATA_BUNDLE_MAX;
        MPIDATA_TRY(reserve(sender, &bundle->memory, &bundle->capacity, bundle->bytes, capacity));
    }
    write_piece(piece, head, parameters, n_parameters, &sender->copies, bundle->memory + bundle->bytes);
    if (!bundle->bytes) bundle->since = sender->committed;
    bundle->bytes += bytes;
    if (!is_due(sender, bundle, bytes)) return MPIDATA_SUCCESS;
    bundle->since = sender->committed;
    MPIDATA_TRY(mpidata_sender_progress(sender));
    return send_idle_bundles(sender);
}

/* A piece that is too large for a bundle was staged like a small one: exchange it with one that can be in flight. */
static int make_sendable(mpidata_sender *sender, int *number) {
    int free_one;
    MPIDATA_TRY(wait_for_free_piece(sender, &free_one));
    mpidata_staged_piece staged = sender->pieces[*number];
    sender->pieces[*number] = sender->pieces[free_one];
    sender->pieces[free_one] = staged;
    *number = free_one;
    return MPIDATA_SUCCESS;
}

int mpidata_sender_send(mpidata_sender *sender, int number, size_t bytes, int trainer) {
    const mpidata_plan *plan = &sender->job->plan;
    mpidata_staged_piece *piece = &sender->pieces[number];
    int apart = 0;
    for (int i = 0; i < piece->n_blocks; i++) apart += !piece->blocks[i].along;
    /* If blocks follow, the header need not be synchronous, because they are. */
    MPIDATA_TRY(send_message(sender, number, trainer, apart ? MPI_Isend : MPI_Issend, piece->header, (int)bytes, MPI_BYTE));
    for (int i = 0; i < piece->n_blocks; i++) {
        const mpidata_staged_block *staged = &piece->blocks[i];
        if (staged->along) continue;
        MPIDATA_TRY(send_message(sender, number, trainer, MPI_Issend, block_values(piece, staged),
                                 (int)mpidata_block_elements(&staged->block),
                                 mpidata_dtype_mpi(plan->fields[staged->block.field].dtype)));
    }
    return MPIDATA_SUCCESS;
}

int mpidata_sender_write(mpidata_sender *sender, int number, mpidata_piece *head, const double *parameters, size_t *bytes) {
    const mpidata_plan *plan = &sender->job->plan;
    mpidata_staged_piece *piece = &sender->pieces[number];
    head->payload_bytes = (int64_t)lay_out_payload(piece);
    *bytes = mpidata_piece_bytes(plan->n_parameters, head->n_blocks, piece->n_moments, head->payload_bytes);
    MPIDATA_TRY(reserve(sender, &piece->header, &piece->header_capacity, 0, *bytes));
    write_piece(piece, head, parameters, plan->n_parameters, &sender->copies, piece->header);
    return MPIDATA_SUCCESS;
}

static int commit_alone(mpidata_sender *sender, int number, mpidata_piece *head, const double *parameters,
                        const int *trainers, int n) {
    mpidata_staged_piece *piece = &sender->pieces[number];
    size_t bytes;
    MPIDATA_TRY(mpidata_sender_write(sender, number, head, parameters, &bytes));
    memcpy(piece->trainers, trainers, (size_t)n * sizeof *trainers);
    piece->n_trainers = n;
    for (int i = 0; i < n; i++) {
        if (sender->bundles) sender->bundles[trainers[i]].in_flight[mpidata_sender_pool(sender)]++;
        MPIDATA_TRY(mpidata_sender_send(sender, number, bytes, trainers[i]));
    }
    return MPIDATA_SUCCESS;
}

static int is_under_way(const mpidata_sender *sender, int trainer) {
    for (int i = 0; i < sender->flight.n; i++)
        if (sender->flight.of[i].trainer == trainer) return 1;
    return 0;
}

/* A transport may connect with the first message, which needs several calls of MPI on both sides: a solver that then computes
 * for a minute would delay its first sample for that long. */
static int meet(mpidata_sender *sender, int trainer) {
    mpidata_backoff backoff = {0};
    if (sender->met[trainer] || !is_under_way(sender, trainer)) return MPIDATA_SUCCESS;
    sender->met[trainer] = 1;
    for (double since = mpidata_now(); is_under_way(sender, trainer) && mpidata_now() - since < MEET_S;) {
        mpidata_backoff_pause(&backoff);
        MPIDATA_TRY(mpidata_sender_progress(sender));
    }
    return MPIDATA_SUCCESS;
}

static void note_time(mpidata_sender *sender) {
    double now = mpidata_now();
    sender->hurried = now - sender->committed < HURRY_S;
    sender->committed = now;
}

int mpidata_sender_commit(mpidata_sender *sender, int64_t simulation, int64_t step, double time, int validation,
                          const double *parameters) {
    int number = sender->filling, trainers[2];
    int n = mpidata_plan_trainers(&sender->job->plan, simulation, step, trainers);
    note_time(sender);
    if (!sender->bundles || !sender->hurried) MPIDATA_TRY(mpidata_sender_progress(sender));
    if (number < 0) {
        if (!mpidata_plan_all_send(&sender->job->plan)) return MPIDATA_SUCCESS;
        MPIDATA_TRY(begin_piece(sender));
        number = sender->filling;
    }
    mpidata_staged_piece *piece = &sender->pieces[number];
    sender->filling = -1;
    sender->tag = validation ? MPIDATA_TAG_VALIDATION : MPIDATA_TAG_SAMPLE;
    mpidata_piece head = {.magic = MPIDATA_PIECE_MAGIC, .n_blocks = piece->n_blocks, .simulation = simulation,
                          .step = step, .time = time, .payload_bytes = (int64_t)lay_out_payload(piece),
                          .by_try = sender->by_try};
    if (sender->bundles && bytes_of_blocks(piece) <= MPIDATA_PIECE_SMALL) {
        for (int i = 0; i < n; i++) MPIDATA_TRY(commit_bundled(sender, piece, &head, parameters, trainers[i]));
        piece_empty(piece);
    } else {
        if (sender->bundles) MPIDATA_TRY(make_sendable(sender, &number));
        MPIDATA_TRY(commit_alone(sender, number, &head, parameters, trainers, n));
    }
    for (int i = 0; i < n; i++) MPIDATA_TRY(meet(sender, trainers[i]));
    return MPIDATA_SUCCESS;
}

static int lends(const mpidata_staged_piece *piece, const void *values) {
    for (int b = 0; b < piece->n_blocks; b++)
        if (piece->blocks[b].lent && (!values || piece->blocks[b].lent == values)) return 1;
    return 0;
}

static int is_flying(const mpidata_sender *sender, int lent_only, const void *values) {
    int flying = !lent_only && sender->flight.n; /* including maps */
    for (int i = 0; i < sender->n_pieces + 3 && !flying; i++)
        flying = sender->pieces[i].under_way && (!lent_only || lends(&sender->pieces[i], values));
    return flying;
}

/* Wait until no message is in flight; with `lent_only` none that lends an array, or this one. */
static int wait_for_flight(mpidata_sender *sender, int lent_only, const void *values) {
    mpidata_backoff backoff = {0};
    MPIDATA_TRY(mpidata_sender_progress(sender));
    const double since = mpidata_now();
    while (is_flying(sender, lent_only, values)) {
        mpidata_backoff_pause(&backoff);
        mpidata_job_waits(sender->job, since);
        MPIDATA_TRY(mpidata_sender_wait(sender));
    }
    sender->waited += mpidata_now() - since;
    return MPIDATA_SUCCESS;
}

int mpidata_sender_drain(mpidata_sender *sender, int lent_only) {
    MPIDATA_TRY(mpidata_sender_flush(sender));
    return wait_for_flight(sender, lent_only, NULL);
}

int mpidata_sender_wait_for(mpidata_sender *sender, const void *values) {
    /* Without a call of MPI if the array is already free, as one in a bundle always is. */
    return is_flying(sender, 1, values) ? wait_for_flight(sender, 1, values) : MPIDATA_SUCCESS;
}

int mpidata_sender_lends(const mpidata_sender *sender, const void *values) {
    for (int i = 0; i < sender->n_pieces; i++)
        if (sender->pieces[i].under_way && lends(&sender->pieces[i], values)) return 1;
    return 0;
}
