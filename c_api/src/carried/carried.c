/* The calls of mpidata_carried.h. What passes between a rank of the program and its carrier is in channel.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "mpidata_carried.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buffer/copy.h"
#include "carried/carried.h"
#include "carried/channel.h"
#include "program/alone.h"
#include "program/caller.h"
#include "wire/put_check.h"

enum { OUTSIDE = 0, ATTACHED, LEFT };

static struct {
    int state, alone;
    pid_t process;
    mpidata_channel channel;
    mpidata_plan plan;
    char who[128];
    int running, failed, stopping, no_more;
    int broken; /* status of a misuse, or of a carrier that has ended: nothing is sent any more */
    int64_t simulation, step;
    int64_t *elements;              /* per field, put by this rank in the present step */
    mpidata_carried_sample *sample; /* that is being filled, or NULL */
    char *values;
    uint32_t n_blocks;
    uint64_t used;
} rank;

/* libmpidata, which must not be in the same process: its calls have the same names. */
extern int mpidata_init_f(int world, int *group) __attribute__((weak));

static void say(void) { (void)fprintf(stderr, "mpidata: %s\n", mpidata_last_error()); }

/* Add the place to the last error, tell the carrier, which ends the job, and return the status. */
static int misuse(int status, const char *advice) {
    char text[MPIDATA_TEXT_MAX];
    (void)snprintf(text, sizeof text, "%s", mpidata_last_error());
    if (rank.state != ATTACHED) {
        (void)mpidata_error(status, "%.1500s. %s", text, advice);
        say();
        return status;
    }
    if (rank.alone) {
        (void)mpidata_error(status, "%.1500s. Step %lld. %s", text, (long long)rank.step, advice);
        say();
        return status;
    }
    (void)mpidata_error(status, "%.1500s. %s, simulation %lld, step %lld. %s", text, rank.who, (long long)rank.simulation,
                        (long long)rank.step, advice);
    if (rank.broken) return status;
    rank.broken = status;
    (void)snprintf(text, sizeof text, "%s", mpidata_last_error());
    (void)mpidata_channel_ask(&rank.channel, MPIDATA_CARRIED_ERROR, text);
    return mpidata_error(status, "%s", text);
}

/* Every call ends here. */
static int settle(int status) {
    if (rank.state != ATTACHED || rank.alone) return status;
    mpidata_carried *shared = rank.channel.shared;
    MPIDATA_CARRIED_SET(shared->beats, shared->beats + 1);
    if (MPIDATA_CARRIED_GET(shared->stopping)) rank.stopping = 1;
    if (status == MPIDATA_ERR_JOB && !rank.broken) say();
    if (status > MPIDATA_END && !rank.broken) rank.broken = status;
    return status;
}

static int is_forked(void) { return rank.state == ATTACHED && rank.process != getpid(); }

static int refuse_forked(void) {
    return mpidata_error(MPIDATA_ERR_ORDER, "This is a forked process, which has no part in the job. Make calls of libmpidata "
                                            "in the parent alone, and end the child with _exit.");
}

static int open_plan(void) {
    MPIDATA_TRY(mpidata_plan_parse(rank.channel.plan_text, &rank.plan));
    memcpy(rank.who, rank.channel.shared->who, sizeof rank.who);
    rank.who[sizeof rank.who - 1] = '\0';
    uint64_t parameters = (uint64_t)((const char *)rank.channel.parameters - (const char *)rank.channel.shared);
    if ((uint64_t)rank.plan.n_parameters > (rank.channel.bytes - parameters) / sizeof(double))
        return mpidata_error(MPIDATA_ERR_JOB, "mpidata_attach: the carrier's memory has no room for the parameters.");
    rank.elements = calloc((size_t)rank.plan.n_fields, sizeof *rank.elements);
    return rank.elements ? MPIDATA_SUCCESS : mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory in mpidata_attach.");
}

static int attach(void) {
    const char *address = getenv(MPIDATA_CARRIER_VARIABLE);
    if (rank.state != OUTSIDE)
        return mpidata_error(MPIDATA_ERR_ORDER, "mpidata_attach: called a second time. Call it once per program.");
    if (mpidata_init_f)
        return mpidata_error(MPIDATA_ERR_ORDER, "mpidata_attach: this program is linked with libmpidata, too. Link a carried "
                                                "program with libmpidata_carried alone.");
    if ((!address || !*address) && getenv("MPIDATA_RUN") && *getenv("MPIDATA_RUN"))
        return mpidata_error(MPIDATA_ERR_ORDER, "mpidata_attach: this program is linked with libmpidata_carried, but the job "
                                                "starts it as one of its ranks. Write `carried: {ranks: 1}` below `solvers` in "
                                                "the job file, or link it with libmpidata: mpidata config --cflags --libs.");
    rank.process = getpid();
    rank.simulation = -1;
    rank.alone = !address || !*address;
    if (rank.alone) {
        mpidata_alone_say_so();
        rank.state = ATTACHED;
        return MPIDATA_SUCCESS;
    }
    MPIDATA_TRY(mpidata_channel_open(&rank.channel, address));
    int status = open_plan();
    if (status) {
        mpidata_channel_close(&rank.channel);
        return status;
    }
    rank.state = ATTACHED;
    return MPIDATA_SUCCESS;
}

int mpidata_attach(void) {
    MPIDATA_CALLED;
    int status = attach();
    if (status) say();
    return status;
}

const char *mpidata_carried_plan(void) { return rank.state == ATTACHED && !rank.alone ? rank.channel.plan_text : NULL; }

int mpidata_report_error(const char *sentence) {
    MPIDATA_CALLED;
    if (is_forked()) return refuse_forked();
    if (rank.state != ATTACHED || rank.alone || rank.broken) return MPIDATA_SUCCESS;
    rank.broken = MPIDATA_ERR_ORDER;
    return mpidata_channel_ask(&rank.channel, MPIDATA_CARRIED_ERROR, sentence);
}

static int need_simulation(const char *call) {
    if (is_forked()) return refuse_forked();
    if (rank.state != ATTACHED) {
        (void)mpidata_error(MPIDATA_ERR_ORDER, "%s was called %s", call,
                            rank.state == LEFT ? "after mpidata_finalize" : "before mpidata_attach");
        return misuse(MPIDATA_ERR_ORDER, "Call mpidata_attach, then mpidata_next, first.");
    }
    if (rank.broken) return rank.broken;
    if (rank.running && !rank.failed) return MPIDATA_SUCCESS;
    (void)mpidata_error(MPIDATA_ERR_ORDER, "%s was called %s", call,
                        rank.failed ? "after mpidata_fail" : "outside a simulation");
    return misuse(MPIDATA_ERR_ORDER, "Call mpidata_next first.");
}

int mpidata_misuse(int status, const char *what, const char *advice) {
    MPIDATA_CALLED;
    if (rank.state == ATTACHED && rank.stopping) return MPIDATA_END;
    MPIDATA_TRY(need_simulation("mpidata_put"));
    (void)mpidata_error(status, "%s", what);
    return settle(misuse(status, advice));
}

static int param(const char *name, double *value) {
    const char *advice = "Set it to one, or unset it; a text is got by mpidata_param_text.";
    int index, status;
    if (!name || !value) return mpidata_error(MPIDATA_ERR_ARGUMENT, "mpidata_param: a pointer is NULL.");
    *value = 0.0;
    if (rank.state == ATTACHED && rank.stopping) return MPIDATA_END;
    MPIDATA_TRY(need_simulation("mpidata_param"));
    if (rank.alone) {
        status = mpidata_alone_param(name, value);
        return status ? misuse(status, advice) : status;
    }
    status = mpidata_param_check(&rank.plan, name, &index, &advice);
    if (status) return misuse(status, advice);
    *value = rank.channel.parameters[index];
    return MPIDATA_SUCCESS;
}

int mpidata_param(const char *name, double *value) { MPIDATA_CALLED; return settle(param(name, value)); }

static int param_text(const char *name, char *text, size_t size) {
    const char *advice;
    if (!name || !text || !size) return mpidata_error(MPIDATA_ERR_ARGUMENT, "mpidata_param_text: an argument is NULL, or 0.");
    *text = '\0';
    if (rank.state == ATTACHED && rank.stopping) return MPIDATA_END;
    MPIDATA_TRY(need_simulation("mpidata_param_text"));
    const mpidata_plan *plan = rank.alone ? NULL : &rank.plan;
    int status = mpidata_param_copy(plan, rank.channel.parameters, name, text, size, &advice);
    return status ? misuse(status, advice) : status;
}

int mpidata_param_text(const char *name, char *text, size_t size) { MPIDATA_CALLED; return settle(param_text(name, text, size)); }

/* -- put ------------------------------------------------------------------------------------------------------------ */

static void copy_values(char *restrict target, const void *restrict values, int64_t elements, size_t bytes, int convert) {
    if (!convert) {
        if (bytes < MPIDATA_BLOCK_ANYWHERE) memcpy(target, values, bytes);
        else (void)mpidata_copy_past_cache(target, values, bytes);
        return;
    }
    mpidata_copy_as_float32(target, values, elements);
}

static int write_block(const mpidata_block *block, const mpidata_put_arguments *put) {
    size_t bytes = mpidata_block_bytes(&rank.plan, block);
    if (!rank.sample) MPIDATA_TRY(mpidata_channel_slot(&rank.channel, &rank.sample, &rank.values));
    if (rank.n_blocks == rank.channel.blocks) {
        (void)mpidata_error(MPIDATA_ERR_BLOCK, "A rank may put at most %d blocks in one step", (int)rank.channel.blocks);
        return misuse(MPIDATA_ERR_BLOCK, "Put larger blocks, several of these at once.");
    }
    uint64_t at = mpidata_padded(rank.used);
    if (at > rank.channel.values_bytes || bytes > rank.channel.values_bytes - at) {
        (void)mpidata_error(MPIDATA_ERR_MEMORY, "A sample has no room in the memory shared with the carrier");
        return misuse(MPIDATA_ERR_MEMORY, "Put larger blocks, several of these at once.");
    }
    copy_values(rank.values + at, put->values, mpidata_block_elements(block), bytes,
                put->dtype != rank.plan.fields[block->field].dtype);
    ((mpidata_carried_block *)(rank.sample + 1))[rank.n_blocks++] = (mpidata_carried_block){.block = *block, .at = at};
    rank.used = at + bytes;
    return MPIDATA_SUCCESS;
}

static int stage(const mpidata_put_arguments *put) {
    const char *advice;
    mpidata_block block;
    if (rank.state == ATTACHED && rank.stopping) return MPIDATA_END;
    MPIDATA_TRY(need_simulation("mpidata_put"));
    int status = mpidata_put_check(rank.alone ? NULL : &rank.plan, put, rank.elements, &block, &advice);
    if (status) return misuse(status, advice);
    if (rank.alone) return MPIDATA_SUCCESS;
    int64_t elements = mpidata_block_elements(&block);
    rank.elements[block.field] += elements;
    return elements ? write_block(&block, put) : MPIDATA_SUCCESS;
}

int mpidata_put(const char *field, const void *values, mpidata_dtype dtype, int ndim, const int64_t *shape) {
    MPIDATA_CALLED;
    return settle(stage(&(mpidata_put_arguments){field, values, dtype, ndim, shape, NULL}));
}

int mpidata_put_block(const char *field, const void *values, mpidata_dtype dtype, int ndim, const int64_t *shape,
                      const int64_t *start) {
    MPIDATA_CALLED;
    const char *advice;
    int status = mpidata_put_needs_start(field, ndim, start, &advice);
    if (status) return misuse(status, advice);
    return settle(stage(&(mpidata_put_arguments){field, values, dtype, ndim, shape, start}));
}

int mpidata_iput(const char *field, const void *values, mpidata_dtype dtype, int ndim, const int64_t *shape,
                 const int64_t *start) {
    MPIDATA_CALLED;
    return settle(stage(&(mpidata_put_arguments){field, values, dtype, ndim, shape, start}));
}

int mpidata_wait(void) { MPIDATA_CALLED; return is_forked() ? refuse_forked() : settle(MPIDATA_SUCCESS); }

int mpidata_wait_for(const void *values) {
    (void)values;
    return mpidata_wait();
}

/* -- step ----------------------------------------------------------------------------------------------------------- */

static void empty_sample(void) {
    rank.sample = NULL;
    rank.n_blocks = 0;
    rank.used = 0;
    if (rank.elements) memset(rank.elements, 0, (size_t)rank.plan.n_fields * sizeof *rank.elements);
}

static int step(double time) {
    if (rank.state == ATTACHED && rank.stopping) return MPIDATA_END;
    MPIDATA_TRY(need_simulation("mpidata_step"));
    /* In a job the carrier ends the program for it, on all ranks: this try has failed. */
    if (!mpidata_is_finite(time) && rank.alone)
        return mpidata_error(MPIDATA_ERR_ARGUMENT, "mpidata_step: the time is not finite. Pass a finite time; call mpidata_fail "
                                                   "where the simulation diverged.");
    if (!rank.alone) {
        /* A rank that has put nothing commits an empty slot: the carrier counts. */
        if (!rank.sample) MPIDATA_TRY(mpidata_channel_slot(&rank.channel, &rank.sample, &rank.values));
        rank.sample->time = time;
        rank.sample->n_blocks = rank.n_blocks;
        MPIDATA_TRY(mpidata_channel_commit(&rank.channel));
        empty_sample();
    }
    rank.step++;
    return MPIDATA_SUCCESS;
}

int mpidata_step(double time) { MPIDATA_CALLED; return settle(step(time)); }

/* -- next, fail, finalize ------------------------------------------------------------------------------------------- */

static int check_committed(void) {
    for (int i = 0; i < rank.plan.n_fields && rank.running && !rank.failed && !rank.stopping; i++) {
        if (!rank.elements[i]) continue;
        (void)mpidata_error(MPIDATA_ERR_ORDER, "Field '%s' was put, but no mpidata_step followed", rank.plan.fields[i].name);
        return misuse(MPIDATA_ERR_ORDER, "Call mpidata_step after the puts of each step, the last one included.");
    }
    return MPIDATA_SUCCESS;
}

static int no_more(void) {
    rank.no_more = 1;
    rank.running = 0;
    return MPIDATA_END;
}

static int next(int64_t *simulation) {
    if (is_forked()) return refuse_forked();
    if (!simulation) return mpidata_error(MPIDATA_ERR_ARGUMENT, "mpidata_next: simulation is NULL.");
    if (rank.state != ATTACHED) return need_simulation("mpidata_next");
    if (rank.broken) return rank.broken;
    if (rank.no_more || (rank.alone && rank.running)) return no_more();
    if (rank.alone) {
        *simulation = rank.simulation = 0;
    } else {
        MPIDATA_TRY(check_committed());
        empty_sample();
        int status = mpidata_channel_ask(&rank.channel, MPIDATA_CARRIED_NEXT, NULL);
        if (status == MPIDATA_END) return no_more();
        MPIDATA_TRY(status);
        *simulation = rank.simulation = rank.channel.shared->simulation;
    }
    rank.step = 0;
    rank.running = 1;
    rank.failed = 0;
    return MPIDATA_SUCCESS;
}

int mpidata_next(int64_t *simulation) { MPIDATA_CALLED; return settle(next(simulation)); }

static int fail(const char *reason, uint32_t how) {
    if (rank.state == ATTACHED && rank.stopping) return MPIDATA_END;
    MPIDATA_TRY(need_simulation("mpidata_fail"));
    if (rank.alone) {
        (void)fprintf(stderr, "mpidata: the simulation is given up: %s\n", reason ? reason : "no reason given");
        return MPIDATA_SUCCESS;
    }
    empty_sample();
    rank.failed = 1;
    return mpidata_channel_ask(&rank.channel, how, reason ? reason : "no reason given");
}

int mpidata_fail(const char *reason) { MPIDATA_CALLED; return settle(fail(reason, MPIDATA_CARRIED_FAIL)); }

int mpidata_fail_try(const char *reason) { MPIDATA_CALLED; return settle(fail(reason, MPIDATA_CARRIED_FAIL_TRY)); }

void mpidata_carried_last_words(const char *words) {
    if (is_forked() || rank.state != ATTACHED || rank.alone) return;
    (void)snprintf(rank.channel.shared->reason, sizeof rank.channel.shared->reason, "%s", words);
}

static int leave(void) {
    if (rank.broken) return rank.broken;
    MPIDATA_TRY(check_committed());
    return mpidata_channel_ask(&rank.channel, MPIDATA_CARRIED_FINALIZE, NULL);
}

int mpidata_finalize(void) {
    MPIDATA_CALLED;
    if (is_forked()) return refuse_forked();
    if (rank.state != ATTACHED) return need_simulation("mpidata_finalize");
    int status = rank.alone ? MPIDATA_SUCCESS : settle(leave());
    if (!rank.alone) {
        mpidata_channel_close(&rank.channel);
        mpidata_plan_free(&rank.plan);
    }
    free(rank.elements);
    rank.elements = NULL;
    rank.state = LEFT;
    return status == MPIDATA_END ? MPIDATA_SUCCESS : status;
}
