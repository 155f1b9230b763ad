/* Sending from the slots of the ranks to the trainers, without a copy unless pieces are small. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls/calls.h"
#include "carrier.h"
#include "solver/solver.h"

static int row_dimension(const ranks_t *ranks, const mpidata_carried_block *block) {
    return mpidata_row_dimension(&ranks->plan->fields[block->block.field]);
}

/* A checked copy of a block of a rank, because the rank may write there meanwhile. */
static int read_block(const ranks_t *ranks, const mpidata_carried_block *there, mpidata_carried_block *block) {
    *block = *there;
    __asm__ volatile("" ::: "memory"); /* the compiler must not read it again */
    MPIDATA_TRY(mpidata_block_check(ranks->plan, &block->block));
    uint64_t bytes = mpidata_block_bytes(ranks->plan, &block->block);
    if (block->at % MPIDATA_BOUNDARY || block->at > ranks->values_bytes || bytes > ranks->values_bytes - block->at)
        return mpidata_error(MPIDATA_ERR_WIRE, "A block of the carried program lies outside the memory for it");
    const uint64_t map_bytes = block->block.map ? (uint64_t)block->block.shape[row_dimension(ranks, block)] * sizeof(int64_t) : 0;
    if (block->map_at % MPIDATA_BOUNDARY || block->map_at > ranks->values_bytes || map_bytes > ranks->values_bytes - block->map_at)
        return mpidata_error(MPIDATA_ERR_WIRE, "A map of the carried program lies outside the memory for it");
    return MPIDATA_SUCCESS;
}

/* The map of a block. The most recently used one comes first; beyond MOST_MAPS, the least recently used one is dropped. */
static int find_map(const ranks_t *ranks, rank_t *rank, const mpidata_carried_block *block, const char *values, const mpidata_map **map) {
    const int64_t n = block->block.shape[row_dimension(ranks, block)];
    int at = 0;
    *map = NULL;
    if (!block->block.map) return MPIDATA_SUCCESS;
    if (!rank->maps && !(rank->maps = calloc(MOST_MAPS, sizeof *rank->maps)))
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for maps of the carried program");
    while (at < MOST_MAPS && rank->maps[at].number && rank->maps[at].number != block->block.map) at++;
    if (at == MOST_MAPS) {
        (void)mpidata_map_free(&rank->maps[--at].map);
        rank->maps[at].number = 0;
    }
    rank_map_t found = rank->maps[at];
    if (!found.number)
        MPIDATA_TRY(mpidata_map_create(n, (const int64_t *)(const void *)(values + block->map_at), &found.map));
    found.number = block->block.map;
    memmove(rank->maps + 1, rank->maps, (size_t)at * sizeof found);
    rank->maps[0] = found;
    *map = found.map;
    return MPIDATA_SUCCESS;
}

/* Rows of a field that a rank has put without maps in the next sample; -1: it has not put the field. */
static int64_t rows_of(const ranks_t *ranks, const rank_t *rank, int field) {
    const char *values;
    int64_t rows = -1;
    if (!rank->shared) return -1;
    const mpidata_carried_sample *sample = ranks_slot(ranks, rank, rank->taken, &values);
    const mpidata_carried_block *blocks = (const mpidata_carried_block *)(sample + 1);
    const uint32_t n_blocks = __atomic_load_n(&sample->n_blocks, __ATOMIC_RELAXED);
    for (uint32_t b = 0; b < n_blocks && b < MPIDATA_BLOCKS_MAX; b++) {
        mpidata_carried_block block;
        if (read_block(ranks, &blocks[b], &block) || block.block.field != field || block.block.map) continue;
        rows = (rows < 0 ? 0 : rows) + block.block.shape[ranks->plan->fields[field].varying];
    }
    return rows;
}

/* Base of a rank's local numbers, without those of the group's other carriers: 1 for the first rank here. */
static int64_t local_from(const ranks_t *ranks, const rank_t *rank, const mpidata_carried_block *block) {
    const mpidata_field *of = &ranks->plan->fields[block->block.field];
    if (of->index_of < 0 || !block->block.start[MPIDATA_LOCAL]) return 0;
    for (int f = 0; f < ranks->plan->n_fields; f++) {
        int64_t before = 0, any = 0;
        if (ranks->plan->fields[f].length != of->index_of) continue;
        for (int i = 0; i < ranks->n; i++) {
            const int64_t rows = rows_of(ranks, &ranks->all[i], f);
            any |= rows >= 0;
            before += rows > 0 && &ranks->all[i] < rank ? rows : 0;
        }
        if (any) return 1 + before;
    }
    return 1;
}

static int is_whole(const mpidata_field *field, const mpidata_block *block) {
    if (field->varying >= 0) return 0; /* parts of several ranks are joined */
    for (int axis = 0; axis < block->ndim; axis++)
        if (block->shape[axis] != field->shape[axis]) return 0;
    return field->ndim > 0 && block->ndim == field->ndim;
}

/* How many ranks have put all of a field in the next sample. */
static int who_put_all(const ranks_t *ranks, int number) {
    int who = 0;
    for (int i = 0; i < ranks->n; i++) {
        const char *values;
        if (!ranks->all[i].shared) continue;
        const mpidata_carried_sample *sample = ranks_slot(ranks, &ranks->all[i], ranks->all[i].taken, &values);
        const mpidata_carried_block *blocks = (const mpidata_carried_block *)(sample + 1);
        const uint32_t n_blocks = __atomic_load_n(&sample->n_blocks, __ATOMIC_RELAXED);
        int has = 0;
        for (uint32_t b = 0; b < n_blocks && b < MPIDATA_BLOCKS_MAX; b++) {
            mpidata_carried_block block;
            if (!read_block(ranks, &blocks[b], &block) && block.block.field == number)
                has |= is_whole(&ranks->plan->fields[number], &block.block);
        }
        who += has;
    }
    return who;
}

int ranks_put_the_same(const ranks_t *ranks, char *what, size_t size) {
    for (int field = 0; ranks->room > 1 && field < ranks->plan->n_fields; field++) {
        const int who = who_put_all(ranks, field);
        if (who < 2) continue;
        (void)snprintf(what, size, "%d ranks of the carried program have put the whole of field '%s'", who,
                       ranks->plan->fields[field].name);
        return 1;
    }
    return 0;
}

#define LISTED(name) name ", "
#define LISTED_LAST(name) "and " name

static int put_block(const ranks_t *ranks, rank_t *rank, const mpidata_carried_block *block, const char *values) {
    const mpidata_field *field = &ranks->plan->fields[block->block.field];
    mpidata_put_arguments put = {.field = field->name, .values = values + block->at, .dtype = (mpidata_dtype)field->dtype,
                                 .ndim = block->block.ndim, .shape = block->block.shape};
    MPIDATA_TRY(find_map(ranks, rank, block, values, &put.map));
    put.by_map = put.map != NULL;
    if (field->varying >= 0 && !put.by_map && !ranks->in_order)
        return mpidata_error(MPIDATA_ERR_ORDER, "The parts of field '%s' are joined in the order of the ranks of the carried program, "
                                                "which is not known: their launcher sets none of "
                                                MPIDATA_CARRIED_NUMBER_VARIABLES(LISTED, LISTED_LAST)
                                                ", or one value twice. Set PMI_RANK to the number of each rank, or put the "
                                                "rows by maps", field->name);
    put.local = local_from(ranks, rank, block);
    if (!put.by_map && field->varying < 0) put.start = block->block.start;
    return mpidata_calls_put(&put, 1);
}

static int put_blocks(const ranks_t *ranks, rank_t *rank, double *time) {
    const char *values;
    if (!rank->shared) return MPIDATA_SUCCESS; /* only connected */
    const mpidata_carried_sample *sample = ranks_slot(ranks, rank, rank->taken, &values);
    const mpidata_carried_block *blocks = (const mpidata_carried_block *)(sample + 1);
    const uint32_t n_blocks = __atomic_load_n(&sample->n_blocks, __ATOMIC_RELAXED);
    *time = sample->time;
    if (n_blocks > MPIDATA_BLOCKS_MAX)
        return mpidata_error(MPIDATA_ERR_WIRE, "A sample of the carried program has %u blocks", (unsigned)n_blocks);
    for (uint32_t i = 0; i < n_blocks; i++) {
        mpidata_carried_block block;
        MPIDATA_TRY(read_block(ranks, &blocks[i], &block));
        MPIDATA_TRY(put_block(ranks, rank, &block, values));
    }
    return MPIDATA_SUCCESS;
}

int send_samples(ranks_t *ranks, int64_t up_to) {
    for (; ranks->sent < up_to; ranks->sent++) {
        double time = 0;
        int status = MPIDATA_SUCCESS;
        for (int i = 0; i < ranks->n && !status; i++) status = put_blocks(ranks, &ranks->all[i], &time);
        if (status && status != MPIDATA_CANCELLED) return status;
        for (int i = 0; i < ranks->n; i++) ranks->all[i].taken += ranks->all[i].shared != NULL;
        if (!status) status = mpidata_step(time);
        if (status == MPIDATA_CANCELLED) ranks_cancel(ranks); /* samples before the step at which the ranks end are dropped */
        else MPIDATA_TRY(status);
        give_slots_back(ranks);
    }
    return MPIDATA_SUCCESS;
}

/* The first block stands for all, because a piece is given back as a whole; but parts of indices and constants are copied,
 * and empty ones are not sent. */
static int is_lent(const ranks_t *ranks, const rank_t *rank, uint64_t number) {
    const char *values;
    const mpidata_carried_sample *sample = ranks_slot(ranks, rank, number, &values);
    if (!ranks->plan->n_lengths && !ranks->plan->n_constants) return mpidata_solver_lends(values);
    const mpidata_carried_block *blocks = (const mpidata_carried_block *)(sample + 1);
    const uint32_t n_blocks = __atomic_load_n(&sample->n_blocks, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < n_blocks && i < MPIDATA_BLOCKS_MAX; i++) {
        mpidata_carried_block block;
        if (!read_block(ranks, &blocks[i], &block) && mpidata_solver_lends(values + block.at)) return 1;
    }
    return 0;
}

void give_slots_back(ranks_t *ranks) {
    for (int i = 0; i < ranks->n; i++) {
        rank_t *rank = &ranks->all[i];
        uint64_t released = rank->released;
        while (rank->shared && released < rank->taken && !is_lent(ranks, rank, released)) released++;
        if (rank->shared && released != rank->released) ranks_give_back(rank, released);
    }
}
