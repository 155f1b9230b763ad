#include "window.h"

#include <stdlib.h>
#include <string.h>

#include "wait.h"

static int no_memory(size_t bytes) {
    return mpidata_error(MPIDATA_ERR_MEMORY,
                         "Out of memory: %zu bytes for the send window. Lower solvers.window in the job file.", bytes);
}

static int reserve(char **memory, size_t *capacity, size_t bytes) {
    if (bytes <= *capacity) return MPIDATA_SUCCESS;
    char *grown = realloc(*memory, bytes);
    if (!grown) return no_memory(bytes);
    *memory = grown;
    *capacity = bytes;
    return MPIDATA_SUCCESS;
}

int mpidata_window_open(mpidata_window *window, const mpidata_job *job) {
    memset(window, 0, sizeof *window);
    window->job = job;
    window->filling = -1;
    window->pieces = calloc((size_t)job->plan.window, sizeof *window->pieces);
    if (!window->pieces) return no_memory((size_t)job->plan.window * sizeof *window->pieces);
    window->n_pieces = job->plan.window;
    return MPIDATA_SUCCESS;
}

void mpidata_window_close(mpidata_window *window) {
    for (int i = 0; i < window->n_pieces; i++) {
        mpidata_staged_piece *piece = &window->pieces[i];
        free(piece->header);
        free(piece->payload);
        free(piece->blocks);
        free(piece->requests);
    }
    free(window->pieces);
    memset(window, 0, sizeof *window);
    window->filling = -1;
}

static void piece_empty(mpidata_staged_piece *piece) {
    piece->n_requests = 0;
    piece->n_blocks = 0;
    piece->payload_bytes = 0;
}

int mpidata_window_progress(void *context) {
    mpidata_window *window = context;
    for (int i = 0; i < window->n_pieces; i++) {
        mpidata_staged_piece *piece = &window->pieces[i];
        int done = 0;
        if (!piece->n_requests) continue;
        MPIDATA_TRY_MPI(MPI_Testall(piece->n_requests, piece->requests, &done, MPI_STATUSES_IGNORE));
        if (done) piece_empty(piece);
    }
    return MPIDATA_SUCCESS;
}

static int free_piece(const mpidata_window *window) {
    for (int i = 0; i < window->n_pieces; i++)
        if (!window->pieces[i].n_requests) return i;
    return -1;
}

static int begin_piece(mpidata_window *window) {
    if (window->filling >= 0) return MPIDATA_SUCCESS;
    mpidata_backoff backoff = {0};
    MPIDATA_TRY(mpidata_window_progress(window));
    while ((window->filling = free_piece(window)) < 0) {
        mpidata_backoff_pause(&backoff);
        MPIDATA_TRY(mpidata_window_progress(window));
    }
    return MPIDATA_SUCCESS;
}

static int reserve_block(mpidata_staged_piece *piece) {
    if (piece->n_blocks < piece->blocks_capacity) return MPIDATA_SUCCESS;
    if (piece->n_blocks == MPIDATA_BLOCKS_MAX)
        return mpidata_error(MPIDATA_ERR_BLOCK, "A rank may put at most %d blocks in one step.", MPIDATA_BLOCKS_MAX);
    int capacity = piece->blocks_capacity ? 2 * piece->blocks_capacity : 4;
    void *blocks = realloc(piece->blocks, (size_t)capacity * sizeof *piece->blocks);
    if (!blocks) return no_memory((size_t)capacity * sizeof *piece->blocks);
    piece->blocks = blocks;
    void *requests = realloc(piece->requests, (size_t)(capacity + 1) * sizeof(MPI_Request));
    if (!requests) return no_memory((size_t)(capacity + 1) * sizeof(MPI_Request));
    piece->requests = requests;
    piece->blocks_capacity = capacity;
    return MPIDATA_SUCCESS;
}

static void copy_converted(void *restrict target, const void *restrict values, int64_t elements, size_t bytes,
                           int convert) {
    if (!convert) {
        memcpy(target, values, bytes);
        return;
    }
    float *restrict out = target;
    const double *restrict in = values;
    for (int64_t i = 0; i < elements; i++) out[i] = (float)in[i];
}

int mpidata_window_stage(mpidata_window *window, const mpidata_block *block, const void *values, mpidata_dtype dtype,
                         int lend) {
    const mpidata_field *field = &window->job->plan.fields[block->field];
    int64_t elements = mpidata_block_elements(block);
    int convert = dtype != field->dtype;
    MPIDATA_TRY(begin_piece(window));
    mpidata_staged_piece *piece = &window->pieces[window->filling];
    MPIDATA_TRY(reserve_block(piece));
    mpidata_staged_block *staged = &piece->blocks[piece->n_blocks];
    staged->block = *block;
    staged->bytes = (size_t)elements * field->element_size;
    staged->lent = lend && !convert ? values : NULL;
    staged->offset = (piece->payload_bytes + 63) & ~(size_t)63;
    if (!staged->lent) {
        MPIDATA_TRY(reserve(&piece->payload, &piece->payload_capacity, staged->offset + staged->bytes));
        copy_converted(piece->payload + staged->offset, values, elements, staged->bytes, convert);
        piece->payload_bytes = staged->offset + staged->bytes;
    }
    piece->n_blocks++;
    return MPIDATA_SUCCESS;
}

void mpidata_window_drop(mpidata_window *window) {
    if (window->filling >= 0) piece_empty(&window->pieces[window->filling]);
    window->filling = -1;
}

static const char *block_values(const mpidata_staged_piece *piece, const mpidata_staged_block *staged) {
    return staged->lent ? staged->lent : piece->payload + staged->offset;
}

static int write_header(mpidata_staged_piece *piece, const mpidata_piece *head, const double *parameters,
                        int n_parameters, size_t *bytes) {
    *bytes = mpidata_piece_header_bytes(n_parameters, piece->n_blocks);
    MPIDATA_TRY(reserve(&piece->header, &piece->header_capacity, *bytes + (size_t)head->inline_bytes));
    char *end = piece->header;
    memcpy(end, head, sizeof *head);
    end += sizeof *head;
    if (n_parameters) memcpy(end, parameters, (size_t)n_parameters * sizeof(double));
    end += (size_t)n_parameters * sizeof(double);
    for (int i = 0; i < piece->n_blocks; i++, end += sizeof(mpidata_block))
        memcpy(end, &piece->blocks[i].block, sizeof(mpidata_block));
    if (!head->inline_bytes) return MPIDATA_SUCCESS;
    for (int i = 0; i < piece->n_blocks; end += piece->blocks[i++].bytes)
        memcpy(end, block_values(piece, &piece->blocks[i]), piece->blocks[i].bytes);
    *bytes += (size_t)head->inline_bytes;
    return MPIDATA_SUCCESS;
}

int mpidata_window_commit(mpidata_window *window, int64_t simulation, int64_t step, double time, int validation,
                          const double *parameters) {
    MPIDATA_TRY(mpidata_window_progress(window));
    if (window->filling < 0) return MPIDATA_SUCCESS;
    const mpidata_job *job = window->job;
    mpidata_staged_piece *piece = &window->pieces[window->filling];
    size_t total = 0, bytes;
    for (int i = 0; i < piece->n_blocks; i++) total += piece->blocks[i].bytes;
    mpidata_piece head = {.magic = MPIDATA_PIECE_MAGIC, .n_blocks = piece->n_blocks, .simulation = simulation,
                          .step = step, .time = time,
                          .inline_bytes = total <= MPIDATA_INLINE_MAX ? (int64_t)total : 0};
    MPIDATA_TRY(write_header(piece, &head, parameters, job->plan.n_parameters, &bytes));
    int trainer = 1 + mpidata_plan_trainer(&job->plan, simulation, step);
    int tag = validation ? MPIDATA_TAG_VALIDATION : MPIDATA_TAG_SAMPLE;
    MPIDATA_TRY_MPI(
        MPI_Issend(piece->header, (int)bytes, MPI_BYTE, trainer, tag, job->data, &piece->requests[0]));
    piece->n_requests = 1;
    window->filling = -1;
    for (int i = 0; i < piece->n_blocks && !head.inline_bytes; i++) {
        const mpidata_staged_block *staged = &piece->blocks[i];
        MPIDATA_TRY_MPI(MPI_Issend(block_values(piece, staged), (int)mpidata_block_elements(&staged->block),
                                   mpidata_dtype_mpi(job->plan.fields[staged->block.field].dtype), trainer, tag,
                                   job->data, &piece->requests[piece->n_requests]));
        piece->n_requests++;
    }
    return MPIDATA_SUCCESS;
}

static int in_flight(const mpidata_window *window, int lent_only) {
    for (int i = 0; i < window->n_pieces; i++) {
        const mpidata_staged_piece *piece = &window->pieces[i];
        if (!piece->n_requests) continue;
        if (!lent_only) return 1;
        for (int b = 0; b < piece->n_blocks; b++)
            if (piece->blocks[b].lent) return 1;
    }
    return 0;
}

int mpidata_window_drain(mpidata_window *window, int lent_only) {
    mpidata_backoff backoff = {0};
    MPIDATA_TRY(mpidata_window_progress(window));
    while (in_flight(window, lent_only)) {
        mpidata_backoff_pause(&backoff);
        MPIDATA_TRY(mpidata_window_progress(window));
    }
    return MPIDATA_SUCCESS;
}
