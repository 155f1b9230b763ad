#include "wire/wire.h"

#include <limits.h>
#include <math.h>

int64_t mpidata_block_elements(const mpidata_block *block) {
    int64_t elements = 1;
    for (int d = 0; d < block->ndim; d++) elements *= block->shape[d];
    return elements;
}

size_t mpidata_block_bytes(const mpidata_plan *plan, const mpidata_block *block) {
    return (size_t)mpidata_block_elements(block) * plan->fields[block->field].element_size;
}

size_t mpidata_blocks_bytes(const mpidata_plan *plan, const mpidata_block *blocks, int n) {
    size_t bytes = 0;
    for (int i = 0; i < n; i++) bytes += mpidata_block_bytes(plan, &blocks[i]);
    return bytes;
}

int64_t mpidata_block_moments(const mpidata_plan *plan, const mpidata_block *block) {
    int axis = plan->fields[block->field].channel_axis;
    if (!plan->n_moments || axis == MPIDATA_NO_STATISTICS || !mpidata_block_elements(block)) return 0;
    return axis < 0 ? 1 : block->shape[axis];
}

int64_t mpidata_blocks_moments(const mpidata_plan *plan, const mpidata_block *blocks, int n) {
    int64_t moments = 0;
    for (int i = 0; i < n && plan->n_moments; i++) moments += mpidata_block_moments(plan, &blocks[i]);
    return moments;
}

size_t mpidata_piece_header_bytes(int n_parameters, int n_blocks, int64_t n_moments) {
    return mpidata_padded(sizeof(mpidata_piece) + (size_t)n_parameters * sizeof(double) +
                          (size_t)n_blocks * sizeof(mpidata_block) + (size_t)n_moments * sizeof(mpidata_moments));
}

size_t mpidata_piece_bytes(int n_parameters, int n_blocks, int64_t n_moments, int64_t payload_bytes) {
    return mpidata_piece_header_bytes(n_parameters, n_blocks, n_moments) + (size_t)payload_bytes;
}

int mpidata_block_check(const mpidata_plan *plan, const mpidata_block *block) {
    if (block->field < 0 || block->field >= plan->n_fields)
        return mpidata_error(MPIDATA_ERR_WIRE, "No field has the number %d", (int)block->field);
    const mpidata_field *field = &plan->fields[block->field];
    if (block->ndim != field->ndim)
        return mpidata_error(MPIDATA_ERR_SHAPE, "A block of field '%s' has %d dimensions, the field has %d",
                             field->name, (int)block->ndim, field->ndim);
    if (block->map < 0 || (block->map && !field->ndim) || (field->varying >= 0 && block->start[MPIDATA_LOCAL] < 0))
        return mpidata_error(MPIDATA_ERR_WIRE, "A block of field '%s' has an impossible place", field->name);
    for (int d = 0; d < field->ndim; d++) {
        const int whole = field->varying >= 0 || (block->map && d > 0); /* in all dimensions except that of the rows */
        int64_t start = whole ? 0 : block->start[d], extent = block->shape[d];
        if (d == field->varying && extent >= 0 && extent <= INT_MAX / field->row) continue;
        if (whole && extent != field->shape[d])
            return mpidata_error(MPIDATA_ERR_SHAPE, "A part of field '%s' has %lld indices in dimension %d", field->name,
                                 (long long)extent, d);
        if (start < 0 || extent < 0 || start > field->shape[d] || extent > field->shape[d] - start)
            return mpidata_error(MPIDATA_ERR_BLOCK,
                                 "A block of field '%s' covers %lld to %lld in dimension %d, the field has 0 to %lld",
                                 field->name, (long long)start, (long long)((uint64_t)start + (uint64_t)extent - 1), d,
                                 (long long)field->shape[d] - 1);
    }
    return MPIDATA_SUCCESS;
}

int mpidata_map_check(const void *message, size_t bytes, const mpidata_map_head **head, const int64_t **indices) {
    *head = message;
    *indices = (const int64_t *)(const void *)(*head + 1);
    const size_t room = (bytes - sizeof **head) / sizeof **indices;
    if ((*head)->count < 1 || (size_t)(*head)->count != room || bytes != sizeof **head + room * sizeof **indices ||
        ((*head)->forgets ? (*head)->number != 0 : (*head)->number < 1))
        return mpidata_error(MPIDATA_ERR_WIRE, "A message of %zu bytes is not a map", bytes);
    for (int64_t i = 0; i < (*head)->count; i++)
        if ((*indices)[i] < (*head)->forgets) return mpidata_error(MPIDATA_ERR_WIRE, "A map has the index %lld", (long long)(*indices)[i]);
    return MPIDATA_SUCCESS;
}

size_t mpidata_map_bytes_max(const mpidata_plan *plan) {
    int64_t rows = 0;
    for (int f = 0; f < plan->n_fields; f++) {
        const mpidata_field *field = &plan->fields[f];
        int64_t most = field->ndim ? field->shape[0] : 0;
        if (field->varying >= 0) most = INT_MAX / field->row;
        rows = most > rows ? most : rows;
    }
    const size_t bytes = sizeof(mpidata_map_head) + (size_t)rows * sizeof(int64_t);
    return bytes < INT_MAX ? bytes : INT_MAX;
}

/* The payload must be that of the blocks that travel along, and if others follow, the message must end with it. */
static int check_payload(const mpidata_plan *plan, const mpidata_piece *head, const mpidata_block *blocks, int is_last) {
    mpidata_walk walk = {.in_all = mpidata_blocks_bytes(plan, blocks, head->n_blocks)};
    int apart = 0;
    for (int i = 0; i < head->n_blocks; i++) apart += !mpidata_walk_on(&walk, mpidata_block_bytes(plan, &blocks[i]));
    if (mpidata_padded(walk.end) != (size_t)head->payload_bytes)
        return mpidata_error(MPIDATA_ERR_WIRE, "A piece carries %lld bytes, its blocks have %zu",
                             (long long)head->payload_bytes, walk.end);
    if (apart && !is_last)
        return mpidata_error(MPIDATA_ERR_WIRE, "A piece with %d blocks to come is followed by another", apart);
    return MPIDATA_SUCCESS;
}

static int check_moments(const mpidata_plan *plan, const mpidata_piece *head, const mpidata_block *blocks) {
    const mpidata_moments *moments = mpidata_piece_moments(head, blocks);
    for (int i = 0; i < head->n_blocks && plan->n_moments; i++) {
        int64_t n = mpidata_block_moments(plan, &blocks[i]), values = n ? mpidata_block_elements(&blocks[i]) / n : 0;
        for (const mpidata_moments *end = moments + n; moments < end; moments++)
            if (!mpidata_moments_possible(moments, values))
                return mpidata_error(MPIDATA_ERR_WIRE, "Block %d of a piece has impossible statistics", i);
    }
    return MPIDATA_SUCCESS;
}

int mpidata_piece_check(const mpidata_plan *plan, const void *message, size_t bytes, const mpidata_piece **piece,
                        const double **parameters, const mpidata_block **blocks, const char **payload) {
    const mpidata_piece *head = message;
    if (bytes < sizeof *head || head->magic != MPIDATA_PIECE_MAGIC)
        return mpidata_error(MPIDATA_ERR_WIRE, "A message of %zu bytes is not the header of a piece", bytes);
    const int64_t first = plan->n_constants ? MPIDATA_STEP_OF_CONSTANTS : 0;
    if (head->n_blocks < !mpidata_plan_all_send(plan) || head->n_blocks > MPIDATA_BLOCKS_MAX || head->payload_bytes < 0 ||
        head->payload_bytes > MPIDATA_ALONG_MAX + MPIDATA_BOUNDARY || head->by_try < 1 || head->step < first ||
        head->step >= MPIDATA_STEPS_MAX || !mpidata_plan_has(plan, head->simulation) || !isfinite(head->time))
        return mpidata_error(MPIDATA_ERR_WIRE, "The header of a piece has impossible values (simulation %lld, step %lld)",
                             (long long)head->simulation, (long long)head->step);
    size_t whole = mpidata_piece_bytes(plan->n_parameters, head->n_blocks, 0, head->payload_bytes);
    if (bytes < whole)
        return mpidata_error(MPIDATA_ERR_WIRE, "A piece of %zu bytes came in a message with %zu", whole, bytes);
    *piece = head;
    *parameters = (const double *)(head + 1);
    *blocks = (const mpidata_block *)(*parameters + plan->n_parameters);
    for (int i = 0; i < head->n_blocks; i++) {
        MPIDATA_TRY(mpidata_block_check(plan, &(*blocks)[i]));
        if (plan->fields[(*blocks)[i].field].per_simulation != (head->step == MPIDATA_STEP_OF_CONSTANTS))
            return mpidata_error(MPIDATA_ERR_WIRE, "Block %d of a piece is %s", i,
                                 head->step < 0 ? "of a step, among constants" : "a constant, in a step");
        if (!mpidata_block_elements(&(*blocks)[i]) && plan->fields[(*blocks)[i].field].varying < 0)
            return mpidata_error(MPIDATA_ERR_WIRE, "Block %d of a piece has no elements", i);
    }
    int64_t moments = mpidata_blocks_moments(plan, *blocks, head->n_blocks);
    whole = mpidata_piece_bytes(plan->n_parameters, head->n_blocks, moments, head->payload_bytes);
    if (bytes < whole)
        return mpidata_error(MPIDATA_ERR_WIRE, "A piece of %zu bytes came in a message with %zu", whole, bytes);
    *payload = (const char *)message + mpidata_piece_header_bytes(plan->n_parameters, head->n_blocks, moments);
    MPIDATA_TRY(check_moments(plan, head, *blocks));
    return check_payload(plan, head, *blocks, bytes == whole);
}
