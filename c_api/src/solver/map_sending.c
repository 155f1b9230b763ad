#include "solver/map_sending.h"

#include <stdlib.h>
#include <string.h>

#include "base/wait.h"
#include "containers/array.h"
#include "dtypes/indices.h"

enum { STREAMS = 2, FORGETS_MAX = 4096 }; /* numbers of one message */

static int no_memory(void) { return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for maps that are being sent"); }

/* Index in `sent` of a map, and of the lists. */
static int stream_of(int trainer, int validation) { return STREAMS * trainer + (validation != 0); }

static void translate(const mpidata_field *field, mpidata_staged_piece *piece, mpidata_staged_block *staged, const mpidata_map *map) {
    const int64_t elements = mpidata_block_elements(&staged->block);
    char *values = piece->payload + staged->offset;
    if (!elements) return;
    mpidata_translate_indices(field->element_size, values, elements, map->indices);
    mpidata_range_of_indices(field->element_size, values, elements, &staged->block.start[MPIDATA_LEAST],
                             &staged->block.start[MPIDATA_GREATEST]);
}

void mpidata_release_put(mpidata_sender *sender, int64_t step) {
    mpidata_put_maps *put = &sender->put_maps;
    int64_t kept = 0;
    for (int64_t i = 0; i < put->n; i++) {
        if (put->list[i].step >= step)
            put->list[kept++] = put->list[i];
        else
            mpidata_map_let_go(put->list[i].map);
    }
    put->n = kept;
}

/* If memory is exhausted, a missing row is not named. */
static void note_put(mpidata_sender *sender, mpidata_map *map, int field, int64_t step) {
    mpidata_put_maps *put = &sender->put_maps;
    if (!mpidata_array_reserve(&put->list, &put->room, put->n + 1, 4, sizeof *put->list)) return;
    put->list[put->n].map = map;
    put->list[put->n].step = step;
    put->list[put->n++].field = field;
    mpidata_map_hold(map);
}

static int64_t first_missing(const uint8_t *bits, int64_t rows) {
    int64_t row = 0;
    while (row < rows && bits[row / 8] >> row % 8 & 1) row++;
    return row < rows ? row : -1;
}

static int reduce(mpidata_sender *sender, void *values, int n, MPI_Datatype type, MPI_Op how) {
    MPI_Request request;
    MPIDATA_TRY_MPI(MPI_Iallreduce(MPI_IN_PLACE, values, n, type, how, sender->job->role, &request));
    return mpidata_wait_request(&request, MPI_STATUS_IGNORE, mpidata_sender_wait, sender);
}

int64_t mpidata_missing_row(mpidata_sender *sender, int64_t step, int field, int64_t put, int64_t rows) {
    const mpidata_put_maps *maps = &sender->put_maps;
    uint8_t *bits = calloc((size_t)rows / 8 + 1, 1);
    int64_t by_maps = bits ? 0 : -2 * (int64_t)INT32_MAX; /* so that the sum of all ranks does not fit */
    for (int64_t m = 0; m < maps->n && bits; m++) {
        if (maps->list[m].field != field || maps->list[m].step != step) continue;
        by_maps += maps->list[m].map->n;
        for (int64_t i = 0; i < maps->list[m].map->n; i++) {
            const int64_t row = maps->list[m].map->indices[i];
            if (row < rows) bits[row / 8] = (uint8_t)(bits[row / 8] | 1u << row % 8);
        }
    }
    int64_t first = -1;
    if (!reduce(sender, &by_maps, 1, MPI_INT64_T, MPI_SUM) && by_maps == put &&
        !reduce(sender, bits, (int)(rows / 8 + 1), MPI_UINT8_T, MPI_BOR))
        first = first_missing(bits, rows);
    free(bits);
    return first;
}

int mpidata_stage_mapped(mpidata_sender *sender, const mpidata_block *block, const mpidata_put_arguments *put, int lend,
                         int64_t step) {
    mpidata_block here = *block;
    mpidata_map *map = (mpidata_map *)(uintptr_t)put->map; /* its holders change */
    if (put->local && !map) here.start[MPIDATA_LOCAL] = put->local;
    if (put->by_map && map->n) here.map = map->number;
    MPIDATA_TRY(mpidata_sender_stage(sender, &here, put, lend));
    mpidata_staged_piece *piece = mpidata_sender_piece(sender, &sender->job->plan.fields[block->field]);
    mpidata_staged_block *staged = &piece->blocks[piece->n_blocks - 1];
    if (put->local && map) translate(&sender->job->plan.fields[block->field], piece, staged, map);
    staged->map = here.map ? map : NULL;
    if (!staged->map) return MPIDATA_SUCCESS;
    mpidata_map_hold(map);
    piece->n_maps++;
    note_put(sender, map, block->field, step);
    return MPIDATA_SUCCESS;
}

static int send_map(mpidata_sender *sender, mpidata_map *map, int trainer, int validation) {
    const size_t n = (size_t)sender->job->plan.trainers * STREAMS;
    if (!map->sent && !(map->sent = calloc(n, 1))) return no_memory();
    char *sent = &map->sent[stream_of(trainer, validation)];
    if (*sent) return MPIDATA_SUCCESS;
    *sent = 1;
    return mpidata_sender_send_map(sender, trainer, validation, map);
}

int mpidata_send_maps_of(mpidata_sender *sender, const mpidata_staged_piece *piece, int trainer, int validation) {
    for (int i = 0; piece->n_maps && i < piece->n_blocks; i++)
        if (piece->blocks[i].map) MPIDATA_TRY(send_map(sender, piece->blocks[i].map, trainer, validation));
    return MPIDATA_SUCCESS;
}

/* Sent as a map without a number, which only its message holds. */
static int send_forgets(mpidata_sender *sender, mpidata_forgets *list, int trainer, int validation) {
    const int64_t n = list->n < FORGETS_MAX ? list->n : FORGETS_MAX;
    const size_t bytes = (size_t)n * sizeof *list->numbers;
    mpidata_map *notice = calloc(1, sizeof *notice);
    if (notice) notice->message = malloc(sizeof *notice->message + bytes);
    if (!notice || !notice->message) {
        free(notice);
        return no_memory();
    }
    *notice->message = (mpidata_map_head){.magic = MPIDATA_MAP_MAGIC, .forgets = 1, .count = n};
    notice->holders = 1;
    memcpy(notice->message + 1, list->numbers + list->n - n, bytes);
    list->n -= n;
    const int status = mpidata_sender_send_map(sender, trainer, validation, notice);
    mpidata_map_let_go(notice);
    return status;
}

static int send_to(mpidata_sender *sender, const mpidata_staged_piece *piece, int trainer, int validation) {
    mpidata_forgets *list = sender->forgets ? &sender->forgets[stream_of(trainer, validation)] : NULL;
    if (list && list->n) {
        MPIDATA_TRY(mpidata_sender_flush_to(sender, trainer)); /* waiting pieces may need them */
        MPIDATA_TRY(send_forgets(sender, list, trainer, validation));
    }
    return piece ? mpidata_send_maps_of(sender, piece, trainer, validation) : MPIDATA_SUCCESS;
}

int mpidata_send_maps(mpidata_sender *sender, int64_t simulation, int64_t step, int validation) {
    const mpidata_staged_piece *piece = sender->filling < 0 ? NULL : &sender->pieces[sender->filling];
    int trainers[2];
    if (piece && !piece->n_maps) piece = NULL;
    if (!piece && !sender->forgets) return MPIDATA_SUCCESS;
    const int n = mpidata_plan_trainers(&sender->job->plan, simulation, step, trainers);
    for (int i = 0; i < n; i++) MPIDATA_TRY(send_to(sender, piece, trainers[i], validation));
    return MPIDATA_SUCCESS;
}

/* If memory is exhausted, trainers keep it until the end. */
void mpidata_forget_map(mpidata_sender *sender, const mpidata_map *map) {
    const int n = sender->job->plan.trainers * STREAMS;
    if (!sender->forgets && !(sender->forgets = calloc((size_t)n, sizeof *sender->forgets))) return;
    for (int i = 0; i < n; i++) {
        mpidata_forgets *list = &sender->forgets[i];
        if (!map->sent[i] || !mpidata_array_reserve(&list->numbers, &list->room, list->n + 1, 16, sizeof *list->numbers)) continue;
        list->numbers[list->n++] = map->number;
    }
}

void mpidata_forget_nothing(mpidata_sender *sender) {
    mpidata_release_put(sender, INT64_MAX);
    free(sender->put_maps.list);
    for (int i = 0; sender->forgets && i < sender->job->plan.trainers * STREAMS; i++) free(sender->forgets[i].numbers);
    free(sender->forgets);
    sender->forgets = NULL;
}
