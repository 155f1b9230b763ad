/* A rank of a carried program. channel.h has the exchange with its carrier. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "mpidata_carried.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calls/calls.h"
#include "calls/maps.h"
#include "calls/values/copy_in.h"
#include "carried/infer_by_memory.h"
#include "carried/carried.h"
#include "carried/channel.h"
#include "carried/published_memory.h"
#include "dtypes/indices.h"
#include "program/single_run.h"
#include "program/caller.h"
#include "wire/failed.h"

static struct {
    pid_t process;
    mpidata_channel channel;
    mpidata_published_memory published; /* stays until the end of the process, for holders of its address */
    mpidata_plan plan;
    char who[128];
    mpidata_carried_sample *sample; /* being filled, or NULL */
    char *values;
    uint32_t n_blocks;
    uint64_t used;
    mpidata_copy_choice copies; /* of values, which the carrier reads */
} rank;

/* libmpidata, which must not be in the same process: its calls have the same names. */
extern int mpidata_init_f(int world, int *group) __attribute__((weak));

static int is_carried(void) { return mpidata_calls.state == MPIDATA_JOINED && !mpidata_calls.alone; }

static void say(void) { (void)fprintf(stderr, "mpidata: %s\n", mpidata_last_error()); }

static void who_is_carried(char *text, size_t size) { (void)snprintf(text, size, "%s", rank.who); }

static void report_to_carrier(const char *sentence) {
    (void)mpidata_channel_ask(&rank.channel, MPIDATA_CARRIED_ERROR, sentence);
}

static int settle_with_carrier(int status) {
    mpidata_carried *shared = rank.channel.shared;
    MPIDATA_CARRIED_SET(shared->beats, shared->beats + 1);
    if (MPIDATA_CARRIED_GET(shared->stopping)) mpidata_calls.stopping = 1;
    if (mpidata_carried_cancelled()) mpidata_calls.cancelled = 1;
    if (status == MPIDATA_ERR_JOB && !mpidata_calls.broken) say();
    const int is_error = status > MPIDATA_END && status != MPIDATA_ERR_AGAIN && status != MPIDATA_CANCELLED;
    if (is_error && !mpidata_calls.broken) mpidata_calls.broken = status;
    return status;
}

static int is_forked(void) { return mpidata_calls.state == MPIDATA_JOINED && rank.process != getpid(); }

static int refuse_fork(void) {
    return mpidata_error(MPIDATA_ERR_ORDER, "This is a forked process, which has no part in the job. Call libmpidata only in "
                                            "the parent, and end the child with _exit.");
}

int mpidata_carried_cancelled(void) {
    return is_carried() && mpidata_calls.running && MPIDATA_CARRIED_GET(rank.channel.shared->cancel_from) == 1;
}

const char *mpidata_carried_plan(void) { return is_carried() ? rank.channel.plan_text : NULL; }

int mpidata_report_error(const char *sentence) {
    MPIDATA_CALLED;
    if (is_forked()) return refuse_fork();
    if (!is_carried() || mpidata_calls.broken) return MPIDATA_SUCCESS;
    mpidata_calls.broken = MPIDATA_ERR_ORDER;
    return mpidata_channel_ask(&rank.channel, MPIDATA_CARRIED_ERROR, sentence);
}

void mpidata_carried_last_words(const char *words) {
    if (!is_carried() || is_forked()) return;
    (void)snprintf(rank.channel.shared->reason, sizeof rank.channel.shared->reason, "%s", words);
}

/* -- put, step ------------------------------------------------------------------------------------------------------ */

static const char LARGER[] = "Put larger blocks, several of these at once.";

/* Take bytes of the slot; *at: their place. */
static int take_room(size_t bytes, uint64_t *at) {
    *at = mpidata_padded(rank.used);
    if (*at <= rank.channel.values_bytes && bytes <= rank.channel.values_bytes - *at) {
        rank.used = *at + bytes;
        return MPIDATA_SUCCESS;
    }
    (void)mpidata_error(MPIDATA_ERR_MEMORY, "A sample has no room in the memory shared with the carrier");
    return mpidata_calls_misuse(MPIDATA_ERR_MEMORY, LARGER);
}

/* The indices follow the values in each sample, once for all fields: the carrier recognizes the map by its number. */
static int stage_map(const mpidata_map *map, mpidata_carried_block *block) {
    const mpidata_carried_block *blocks = (const mpidata_carried_block *)(rank.sample + 1);
    block->block.map = map->number;
    for (uint32_t b = rank.n_blocks; b-- > 0;)
        if (blocks[b].block.map == map->number) {
            block->map_at = blocks[b].map_at;
            return MPIDATA_SUCCESS;
        }
    const size_t bytes = (size_t)map->n * sizeof *map->indices;
    MPIDATA_TRY(take_room(bytes, &block->map_at));
    memcpy(rank.values + block->map_at, map->indices, bytes);
    return MPIDATA_SUCCESS;
}

/* Translate local numbers to those of the group, from the field's base on. */
static void translate(const mpidata_field *field, char *values, int64_t elements, const mpidata_map *map) {
    mpidata_shift_indices(field->element_size, values, elements, -field->base);
    mpidata_translate_indices(field->element_size, values, elements, map->indices);
    mpidata_shift_indices(field->element_size, values, elements, field->base);
}

static int stage_in_slot(const mpidata_block *block, const mpidata_put_arguments *put, int lend) {
    const mpidata_field *field = &rank.plan.fields[block->field];
    mpidata_carried_block there = {.block = *block};
    size_t bytes = mpidata_block_bytes(&rank.plan, block);
    (void)lend; /* the carrier has no access to the program's arrays */
    if (!rank.sample) MPIDATA_TRY(mpidata_channel_slot(&rank.channel, &rank.sample, &rank.values));
    if (rank.n_blocks == rank.channel.blocks) {
        (void)mpidata_error(MPIDATA_ERR_BLOCK, "A rank may put at most %d blocks in one step", (int)rank.channel.blocks);
        return mpidata_calls_misuse(MPIDATA_ERR_BLOCK, LARGER);
    }
    MPIDATA_TRY(take_room(bytes, &there.at));
    MPIDATA_TRY(mpidata_copy_in(rank.values + there.at, put, field->dtype, bytes, &rank.copies));
    if (put->by_map && put->map->n) MPIDATA_TRY(stage_map(put->map, &there));
    if (put->local && put->map) translate(field, rank.values + there.at, mpidata_block_elements(block), put->map);
    if (put->local && !put->map) there.block.start[MPIDATA_LOCAL] = put->local;
    ((mpidata_carried_block *)(rank.sample + 1))[rank.n_blocks++] = there;
    return MPIDATA_SUCCESS;
}

static int wait_for_nothing(const void *values) {
    (void)values;
    return MPIDATA_SUCCESS;
}

static void forget_nothing(const mpidata_map *map) { (void)map; } /* the carrier decides which ones it keeps */

static void drop_slot(void) {
    rank.sample = NULL;
    rank.n_blocks = 0;
    rank.used = 0;
}

/* The carrier checks the time and the puts of all ranks. A rank that has put nothing commits an empty slot. All ranks end a
 * cancelled simulation here, at the same step: only a program of one rank need not wait for it. */
static int commit_slot(double time) {
    const uint64_t cancel_from = MPIDATA_CARRIED_GET(rank.channel.shared->cancel_from);
    if (cancel_from && rank.channel.committed + 1 >= cancel_from) {
        mpidata_calls.cancelled = 1;
        return MPIDATA_CANCELLED;
    }
    if (!rank.sample) MPIDATA_TRY(mpidata_channel_slot(&rank.channel, &rank.sample, &rank.values));
    rank.sample->time = time;
    rank.sample->n_blocks = rank.n_blocks;
    MPIDATA_TRY(mpidata_channel_commit(&rank.channel));
    drop_slot();
    mpidata_calls_empty_step();
    mpidata_calls.step++;
    return MPIDATA_SUCCESS;
}

/* -- refresh -------------------------------------------------------------------------------------------------------- */

static int ask_for_newer(void) {
    int memory;
    MPIDATA_TRY(mpidata_channel_ask(&rank.channel, MPIDATA_CARRIED_REFRESH, NULL));
    MPIDATA_TRY(mpidata_channel_published(&rank.channel, &memory));
    if (memory < 0) return MPIDATA_SUCCESS;
    const int status = mpidata_published_memory_take(&rank.published, memory, rank.channel.shared->published);
    (void)close(memory);
    return status;
}

static const mpidata_contents *published_here(void) { return rank.published.contents; }

/* -- questions ------------------------------------------------------------------------------------------------------ */

static int ask_by_memory(const mpidata_array *in, int n_in, const mpidata_array *out, int n_out, int64_t *version, int64_t *question) {
    return mpidata_carried_infer_begin(&rank.channel, in, n_in, out, n_out, version, question);
}

static int wait_for_answer_of(int64_t question) { return mpidata_carried_infer_wait(&rank.channel, question); }

static int settle_questions(void) { return mpidata_carried_infer_settle(&rank.channel); }

/* -- next, fail, finalize: the carrier counts ------------------------------------------------------------------------ */

static int ask_for_next(const mpidata_done *done, int64_t *simulation) {
    (void)done;
    MPIDATA_TRY(mpidata_channel_ask(&rank.channel, MPIDATA_CARRIED_NEXT, NULL));
    *simulation = rank.channel.shared->simulation;
    return MPIDATA_SUCCESS;
}

static int tell_of_failure(const char *reason, int how) {
    return mpidata_channel_ask(&rank.channel, how == MPIDATA_GIVEN_UP ? MPIDATA_CARRIED_FAIL : MPIDATA_CARRIED_FAIL_TRY, reason);
}

static int leave_carrier(const mpidata_done *done) {
    (void)done;
    return mpidata_channel_ask(&rank.channel, MPIDATA_CARRIED_FINALIZE, NULL);
}

static void close_carried(void) {
    if (!is_carried()) return;
    mpidata_carried_infer_close();
    mpidata_channel_close(&rank.channel);
    mpidata_plan_free(&rank.plan);
}

static const mpidata_transport BY_MEMORY = {
    .forked = is_forked, .refuse_forked = refuse_fork, .who = who_is_carried, .settle = settle_with_carrier,
    .report = report_to_carrier, .stage = stage_in_slot, .wait = wait_for_nothing, .step = commit_slot, .drop = drop_slot, .forget = forget_nothing,
    .complete = settle_questions, .next = ask_for_next, .fail = tell_of_failure, .leave = leave_carrier, .close = close_carried,
    .refresh = ask_for_newer, .published = published_here, .ask = ask_by_memory, .answer = wait_for_answer_of,
};

/* -- join ----------------------------------------------------------------------------------------------------------- */

static int open_plan(void) {
    MPIDATA_TRY(mpidata_plan_parse(rank.channel.plan_text, &rank.plan));
    memcpy(rank.who, rank.channel.shared->who, sizeof rank.who);
    rank.who[sizeof rank.who - 1] = '\0';
    uint64_t parameters = (uint64_t)((const char *)rank.channel.parameters - (const char *)rank.channel.shared);
    if ((uint64_t)rank.plan.n_parameters > (rank.channel.bytes - parameters) / sizeof(double))
        return mpidata_error(MPIDATA_ERR_JOB, "mpidata_attach: the carrier's memory has no room for the parameters.");
    return mpidata_calls_begin(&BY_MEMORY, &rank.plan, rank.channel.parameters);
}

static int attach(void) {
    const char *address = getenv(MPIDATA_CARRIER_VARIABLE);
    MPIDATA_TRY(mpidata_calls_may_join());
    if (mpidata_init_f)
        return mpidata_error(MPIDATA_ERR_ORDER, "mpidata_attach: this program is also linked with libmpidata. Link a carried "
                                                "program only with libmpidata_carried.");
    if ((!address || !*address) && getenv("MPIDATA_RUN") && *getenv("MPIDATA_RUN"))
        return mpidata_error(MPIDATA_ERR_ORDER, "mpidata_attach: this program is linked with libmpidata_carried, but the job "
                                                "starts it as one of its ranks. Write `carried: {ranks: 1}` below `solvers` in "
                                                "the job file, or link it with libmpidata: mpidata config --cflags --libs.");
    rank.process = getpid();
    if (!address || !*address) {
        mpidata_alone_say_so();
        return mpidata_calls_begin(&BY_MEMORY, NULL, NULL);
    }
    MPIDATA_TRY(mpidata_channel_open(&rank.channel, address));
    int status = open_plan();
    if (status) mpidata_channel_close(&rank.channel);
    return status;
}

int mpidata_attach(void) {
    MPIDATA_CALLED;
    int status = attach();
    if (status) say();
    return status;
}
