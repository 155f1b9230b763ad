#include "calls/calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls/bindings.h"
#include "calls/constants_check.h"
#include "calls/maps.h"
#include "calls/values/strided.h"
#include "device/copying.h"
#include "program/single_run.h"
#include "program/caller.h"
#include "wire/failed.h"

#ifdef MPIDATA_WITHOUT_MPI
#define JOINS "mpidata_attach"
#else
#define JOINS "mpidata_init"
#endif

mpidata_solver_calls mpidata_calls;
static const mpidata_transport *transport; /* NULL: this process has not joined yet */
static char early_error[MPIDATA_TEXT_MAX];

static int in_job(void) { return mpidata_calls.state == MPIDATA_JOINED && !mpidata_calls.alone; }

static int refuse_forked(void) { return transport && transport->forked() ? transport->refuse_forked() : MPIDATA_SUCCESS; }

/* -- errors --------------------------------------------------------------------------------------------------------- */

const char *mpidata_calls_early_error(void) { return early_error; }

/* mpidata_init reports it to the job; a carrier knows no rank before mpidata_attach. */
static void remember_early_error(void) {
    if (!*early_error) (void)snprintf(early_error, sizeof early_error, "%s", mpidata_last_error());
#ifdef MPIDATA_WITHOUT_MPI
    (void)fprintf(stderr, "mpidata: %s\n", mpidata_last_error());
#endif
}

/* Add the place and the advice to the last error; outside a job, print it to stderr. */
static int say_where(int status, const char *advice) {
    char text[MPIDATA_TEXT_MAX], who[128];
    const long long simulation = mpidata_calls.simulation, step = mpidata_calls.step;
    (void)snprintf(text, sizeof text, "%s", mpidata_last_error());
    if (mpidata_calls.state != MPIDATA_JOINED) {
        (void)mpidata_error(status, "%.1500s. %s", text, advice);
        remember_early_error();
    } else if (mpidata_calls.alone) {
        (void)mpidata_error(status, "%.1500s. Step %lld. %s", text, step, advice);
        (void)fprintf(stderr, "mpidata: %s\n", mpidata_last_error());
    } else {
        transport->who(who, sizeof who);
        if (simulation < 0)
            (void)mpidata_error(status, "%.1500s. %s, before the first simulation. %s", text, who, advice);
        else
            (void)mpidata_error(status, "%.1500s. %s, simulation %lld, step %lld. %s", text, who, simulation, step, advice);
    }
    return status;
}

int mpidata_calls_misuse(int status, const char *advice) {
    char text[MPIDATA_TEXT_MAX];
    (void)say_where(status, advice);
    if (!in_job() || mpidata_calls.broken) return status;
    mpidata_calls.broken = status;
    (void)snprintf(text, sizeof text, "%s", mpidata_last_error());
    transport->report(text);
    return mpidata_error(status, "%s", text);
}

/* Every call ends here. */
static int settle(int status) { return in_job() ? transport->settle(status) : status; }

int mpidata_calls_settle(int status) { return settle(status); }

const mpidata_transport *mpidata_calls_transport(void) { return transport; }

int mpidata_calls_not_finite(void) {
    return mpidata_error(MPIDATA_ERR_ARGUMENT, "mpidata_step: the time is not finite: this try of the simulation has failed. Call "
                                               "mpidata_next.");
}

static int need_job(const char *call) {
    const mpidata_solver_calls *calls = &mpidata_calls;
    if (calls->state != MPIDATA_JOINED) {
        (void)mpidata_error(MPIDATA_ERR_ORDER, "%s was called %s", call,
                            calls->state == MPIDATA_LEFT ? "after mpidata_finalize" : "before " JOINS);
        return mpidata_calls_misuse(MPIDATA_ERR_ORDER, "Call " JOINS ", then mpidata_next, first.");
    }
    if (calls->broken) return calls->broken;
    return calls->lame ? mpidata_calls_not_finite() : MPIDATA_SUCCESS;
}

int mpidata_calls_enter(const char *call) {
    MPIDATA_TRY(refuse_forked());
    return need_job(call);
}

static int need_simulation(const char *call) {
    const mpidata_solver_calls *calls = &mpidata_calls;
    MPIDATA_TRY(need_job(call));
    if (calls->running && !calls->failed) return MPIDATA_SUCCESS;
    (void)mpidata_error(MPIDATA_ERR_ORDER, "%s was called %s", call, calls->failed ? "after mpidata_fail" : "outside a simulation");
    return mpidata_calls_misuse(MPIDATA_ERR_ORDER, "Call mpidata_next first.");
}

/* The start of each call within a simulation; returns MPIDATA_END if the job is stopping. */
static int enter_simulation(const char *call) {
    MPIDATA_TRY(refuse_forked());
    return mpidata_calls.state == MPIDATA_JOINED && mpidata_calls.stopping ? MPIDATA_END : need_simulation(call);
}

/* The start of each call that sends data. */
static int enter(const char *call) {
    MPIDATA_TRY(enter_simulation(call));
    return mpidata_calls.cancelled ? MPIDATA_CANCELLED : MPIDATA_SUCCESS;
}

int mpidata_calls_enter_simulation(const char *call) { return enter(call); }

int mpidata_misuse(int status, const char *what, const char *advice) {
    MPIDATA_CALLED;
    MPIDATA_TRY(enter("mpidata_put"));
    (void)mpidata_error(status, "%s", what);
    return settle(mpidata_calls_misuse(status, advice));
}

/* -- join ----------------------------------------------------------------------------------------------------------- */

int mpidata_calls_may_join(void) {
    if (mpidata_calls.state == MPIDATA_OUTSIDE) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_ORDER, JOINS ": called a second time. Call it once per program.");
}

int mpidata_calls_begin(const mpidata_transport *by, const mpidata_plan *plan, const double *parameters) {
    int64_t *counts = plan ? calloc((size_t)mpidata_plan_counts(plan), sizeof *counts) : NULL;
    if (plan && !counts) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory in " JOINS ".");
    int64_t *constants = plan && plan->n_constants ? calloc(2 * (size_t)mpidata_plan_counts(plan), sizeof *constants) : NULL;
    if (plan && plan->n_constants && !constants) {
        free(counts);
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory in " JOINS ".");
    }
    transport = by;
    mpidata_maps_open(by->forget);
    mpidata_calls = (mpidata_solver_calls){.state = MPIDATA_JOINED, .alone = !plan, .simulation = -1, .counts = counts,
                                           .constants = constants, .plan = plan, .parameters = parameters};
    return MPIDATA_SUCCESS;
}

/* -- parameters ----------------------------------------------------------------------------------------------------- */

static int need_parameters(const char *call, const void *name, const void *value) {
    MPIDATA_TRY(refuse_forked());
    if (!name || !value) return mpidata_error(MPIDATA_ERR_ARGUMENT, "%s: a pointer is NULL.", call);
    return enter_simulation(call);
}

static int param(const char *name, double *value) {
    const char *advice = "Set it to one, or unset it; read texts with mpidata_param_text.";
    int index;
    if (value) *value = 0.0;
    MPIDATA_TRY(need_parameters("mpidata_param", name, value));
    int status = mpidata_calls.alone ? mpidata_alone_param(name, value)
                                     : mpidata_param_check(mpidata_calls.plan, name, &index, &advice);
    if (status) return mpidata_calls_misuse(status, advice);
    if (!mpidata_calls.alone) *value = mpidata_calls.parameters[index];
    return MPIDATA_SUCCESS;
}

int mpidata_param(const char *name, double *value) { MPIDATA_CALLED; return settle(param(name, value)); }

static int param_text(const char *name, char *text, size_t size) {
    const char *advice;
    if (text && size) *text = '\0';
    MPIDATA_TRY(need_parameters("mpidata_param_text", name, text));
    int status = mpidata_param_copy(mpidata_calls.plan, mpidata_calls.parameters, name, text, size, &advice);
    return status ? mpidata_calls_misuse(status, advice) : status;
}

int mpidata_param_text(const char *name, char *text, size_t size) { MPIDATA_CALLED; return settle(param_text(name, text, size)); }

/* -- put ------------------------------------------------------------------------------------------------------------ */

/* Find where the values of a put are: values on a device are copied later, but row numbers now, because they are checked. */
static int locate(mpidata_put_arguments *put, int lend, const char **advice) {
    *advice = "Use mpidata_put or mpidata_put_block, which copy it.";
    MPIDATA_TRY(mpidata_device_find(put->values, &put->device));
    if (!put->device.driver) return MPIDATA_SUCCESS;
    if (lend) return mpidata_error(MPIDATA_ERR_ARGUMENT, "Field '%.100s': an array in the memory of a device cannot be lent", put->field);
    return put->local && !mpidata_calls.alone ? mpidata_gather_strided(put, NULL) : MPIDATA_SUCCESS;
}

/* The device may be faulty, so only this try fails: no more of it is sent. */
static int refuse_put(int status, const char *advice) {
    if (status != MPIDATA_ERR_DEVICE) return mpidata_calls_misuse(status, advice);
    (void)say_where(status, "An earlier call of the program may be the cause. This try of the simulation has failed: end the program.");
    return mpidata_calls.broken = status;
}

static int put_values(mpidata_put_arguments *put, int lend) {
    const char *advice;
    mpidata_block block;
    MPIDATA_TRY(enter("mpidata_put"));
    int status = mpidata_put_check(mpidata_calls.plan, put, mpidata_calls.counts, &block, &advice);
    if (!status) status = locate(put, lend, &advice);
    if (!status && !mpidata_calls.alone && mpidata_calls.step) status = mpidata_constant_check(&mpidata_calls.plan->fields[block.field], &advice);
    if (!status && put->by_map) status = mpidata_rows_check(mpidata_calls.plan, put, &block, &advice);
    if (!status && put->local) status = mpidata_local_numbers_check(mpidata_calls.plan, put, &block, &advice);
    if (status) return refuse_put(status, advice);
    if (mpidata_calls.alone) return MPIDATA_SUCCESS;
    int64_t elements = mpidata_block_elements(&block);
    mpidata_calls.counts[block.field] += elements;
    if (mpidata_calls.plan->n_numbers) mpidata_calls.counts[mpidata_calls.plan->n_fields + block.field]++;
    const int varies = mpidata_calls.plan->fields[block.field].varying >= 0; /* an empty part also counts as put */
    status = elements || varies ? transport->stage(&block, put, lend) : MPIDATA_SUCCESS;
    return status == MPIDATA_ERR_DEVICE ? refuse_put(status, NULL) : status;
}

int mpidata_declared_dtype(const char *field) {
    const mpidata_plan *plan = in_job() ? mpidata_calls.plan : NULL;
    const int index = plan ? mpidata_plan_field(plan, field) : -1;
    return index < 0 ? 0 : (int)plan->fields[index].dtype;
}

int mpidata_calls_put(mpidata_put_arguments *put, int lend) { return settle(put_values(put, lend)); }

/* The arguments that all of these calls have, and in `put` those that only some have. */
static int put_any(const char *field, const void *values, mpidata_dtype dtype, int ndim, mpidata_put_arguments *put, int lend) {
    put->field = field;
    put->values = values;
    put->dtype = dtype;
    put->ndim = ndim;
    return mpidata_calls_put(put, lend);
}

int mpidata_put(const char *field, const void *values, mpidata_dtype dtype, int ndim, const int64_t *shape) {
    MPIDATA_CALLED;
    return put_any(field, values, dtype, ndim, &(mpidata_put_arguments){.shape = shape}, 0);
}

int mpidata_put_block(const char *field, const void *values, mpidata_dtype dtype, int ndim, const int64_t *shape,
                      const int64_t *start) {
    MPIDATA_CALLED;
    const char *advice;
    MPIDATA_TRY(refuse_forked());
    int status = mpidata_put_needs_start(field, ndim, start, &advice);
    if (status) return mpidata_calls_misuse(status, advice);
    return put_any(field, values, dtype, ndim, &(mpidata_put_arguments){.shape = shape, .start = start}, 0);
}

int mpidata_iput(const char *field, const void *values, mpidata_dtype dtype, int ndim, const int64_t *shape,
                 const int64_t *start) {
    MPIDATA_CALLED;
    return put_any(field, values, dtype, ndim, &(mpidata_put_arguments){.shape = shape, .start = start}, 1);
}

/* Gathered only in a job: outside, no declared shape limits the memory. */
static int put_strided(mpidata_put_arguments put, const int64_t *strides) {
    const char *advice;
    mpidata_block block;
    MPIDATA_TRY(enter("mpidata_put_strided"));
    int status = mpidata_put_check(mpidata_calls.plan, &put, mpidata_calls.counts, &block, &advice);
    if (!status) status = mpidata_strides_check(&put, strides, &advice);
    if (!status && put.by_map) status = mpidata_rows_check(mpidata_calls.plan, &put, &block, &advice);
    if (!status) status = mpidata_device_find(put.values, &put.device);
    if (!status && !mpidata_calls.alone) {
        advice = "Lower the size of the blocks.";
        status = mpidata_gather_strided(&put, strides);
    }
    return status ? refuse_put(status, advice) : put_values(&put, 0);
}

int mpidata_put_strided(const char *field, const void *values, mpidata_dtype dtype, int ndim, const int64_t *shape,
                        const int64_t *start, const int64_t *strides) {
    MPIDATA_CALLED;
    const mpidata_put_arguments put = {.field = field, .values = values, .dtype = dtype, .ndim = ndim, .shape = shape, .start = start};
    return settle(put_strided(put, strides));
}

int mpidata_put_strided_rows(const char *field, const void *values, mpidata_dtype dtype, int ndim, const int64_t *shape,
                             const int64_t *strides, const mpidata_map *map, int as_indices) {
    MPIDATA_CALLED;
    const mpidata_put_arguments put = {.field = field, .values = values, .dtype = dtype, .ndim = ndim, .shape = shape, .map = map,
                                       .by_map = !as_indices, .local = as_indices};
    return settle(put_strided(put, strides));
}

int mpidata_put_mapped(const char *field, const void *values, mpidata_dtype dtype, int ndim, const int64_t *shape,
                       const mpidata_map *map) {
    MPIDATA_CALLED;
    return put_any(field, values, dtype, ndim, &(mpidata_put_arguments){.shape = shape, .map = map, .by_map = 1}, 0);
}

int mpidata_put_indices(const char *field, const void *values, mpidata_dtype dtype, int ndim, const int64_t *shape,
                        const mpidata_map *map) {
    MPIDATA_CALLED;
    return put_any(field, values, dtype, ndim, &(mpidata_put_arguments){.shape = shape, .map = map, .local = 1}, 0);
}

int mpidata_map_create(int64_t n, const int64_t *indices, mpidata_map **map) {
    MPIDATA_CALLED;
    const char *advice = "";
    MPIDATA_TRY(refuse_forked());
    if (!map) return mpidata_error(MPIDATA_ERR_ARGUMENT, "mpidata_map_create: map is NULL.");
    const int status = mpidata_map_make(n, indices, map, &advice);
    return status ? settle(mpidata_calls_misuse(status, advice)) : status;
}

int mpidata_map_free(mpidata_map **map) {
    MPIDATA_CALLED;
    MPIDATA_TRY(refuse_forked());
    if (map && *map) mpidata_map_let_go(*map);
    if (map) *map = NULL;
    return MPIDATA_SUCCESS;
}

int mpidata_map_known(int64_t n, const int64_t *indices, int64_t base, mpidata_map **map) {
    MPIDATA_CALLED;
    const char *advice = "";
    *map = NULL;
    MPIDATA_TRY(refuse_forked());
    const int status = mpidata_map_remember(n, indices, base, map, &advice);
    return status ? settle(mpidata_calls_misuse(status, advice)) : status;
}

int mpidata_wait(void) {
    MPIDATA_CALLED;
    MPIDATA_TRY(refuse_forked());
    return settle(in_job() ? transport->wait(NULL) : MPIDATA_SUCCESS);
}

int mpidata_wait_for(const void *values) {
    MPIDATA_CALLED;
    MPIDATA_TRY(refuse_forked());
    return settle(in_job() && values ? transport->wait(values) : MPIDATA_SUCCESS);
}

/* -- step ----------------------------------------------------------------------------------------------------------- */

void mpidata_calls_empty_step(void) {
    memset(mpidata_calls.counts, 0, (size_t)mpidata_plan_counts(mpidata_calls.plan) * sizeof *mpidata_calls.counts);
}

/* Refuse a step, which may not be the current one. */
static int misuse_of_step(int status, int64_t step, const char *advice) {
    int64_t present = mpidata_calls.step;
    mpidata_calls.step = step;
    (void)mpidata_calls_misuse(status, advice);
    mpidata_calls.step = present;
    return status;
}

static int was_not_put(const mpidata_field *field) {
    return field->given >= 0 ? MPIDATA_SUCCESS : mpidata_error(MPIDATA_ERR_FIELD, "Field '%s' was not put", field->name);
}

/* If maps leave a hole, name the missing row. */
static int name_missing_row(int64_t step, int index, int64_t put, int64_t rows) {
    const int64_t first = put < rows ? transport->missing_row(step, index, put, rows) : -1;
    if (first < 0) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_BLOCK, "Row %lld of field '%s' is missing: the maps of all ranks have %lld of its %lld "
                                            "rows",
                         (long long)first, mpidata_calls.plan->fields[index].name, (long long)put, (long long)rows);
}

/* Check a field that does not vary. */
static int check_elements(const mpidata_plan *plan, int index, int64_t elements, int64_t step) {
    const mpidata_field *field = &plan->fields[index];
    if (elements == field->row) return MPIDATA_SUCCESS;
    if (!elements) return was_not_put(field);
    const int64_t rows = field->ndim ? field->shape[0] : 1, row = field->row / rows;
    if (elements % row == 0) MPIDATA_TRY(name_missing_row(step, index, elements / row, rows));
    return mpidata_error(MPIDATA_ERR_BLOCK, "The blocks of field '%s' have %lld elements, the field has %lld: %s", field->name,
                         (long long)elements, (long long)field->row,
                         elements < field->row ? "they leave a hole" : "they overlap, or it was put twice");
}

/* Check a field that varies against those before it. An optional field that was not put has the length of others, except
 * index fields, which are then empty. */
static int check_length(const mpidata_plan *plan, int index, const int64_t *counts, int64_t step) {
    const mpidata_field *field = &plan->fields[index];
    const mpidata_length *length = &plan->lengths[field->length];
    const int64_t rows = counts[index] / field->row;
    if (!counts[plan->n_fields + index] && (field->given < 0 || field->index_of < 0)) return was_not_put(field);
    if (length->at_most && rows > length->at_most)
        return mpidata_error(MPIDATA_ERR_SHAPE, "The parts of field '%s' have %lld '%s', at most %lld are declared", field->name,
                             (long long)rows, length->name, (long long)length->at_most);
    for (int i = 0; i < index; i++) {
        const mpidata_field *other = &plan->fields[i];
        const int64_t others = counts[i] / other->row;
        const int counts_too = counts[plan->n_fields + i] || other->index_of >= 0;
        if (other->length != field->length || !counts_too || others == rows) continue;
        MPIDATA_TRY(name_missing_row(step, index, rows, others));
        MPIDATA_TRY(name_missing_row(step, i, others, rows));
        return mpidata_error(MPIDATA_ERR_SHAPE, "Fields '%s' and '%s' have %lld and %lld '%s', which must be equal", other->name,
                             field->name, (long long)others, (long long)rows, length->name);
    }
    return MPIDATA_SUCCESS;
}

int mpidata_calls_check_cover(const int64_t *counts, int64_t step, int tells) {
    const mpidata_plan *plan = mpidata_calls.plan;
    if (plan->n_constants) counts = mpidata_counts_with_constants(plan, counts, step, mpidata_calls.constants);
    for (int i = 0; i < plan->n_fields; i++) {
        const mpidata_field *field = &plan->fields[i];
        int status = field->varying < 0 ? check_elements(plan, i, counts[i], step) : check_length(plan, i, counts, step);
        if (status && !tells) return mpidata_calls.broken = status;
        if (status && field->per_simulation && !step)
            return misuse_of_step(status, step, MPIDATA_PUT_CONSTANTS);
        if (status && field->varying < 0)
            return misuse_of_step(status, step, "The blocks of all ranks must cover each field exactly once per step.");
        if (status)
            return misuse_of_step(status, step, "In each step put each field, by at least one rank; fields whose shapes have a common "
                                                "name must have the same length.");
    }
    return MPIDATA_SUCCESS;
}

static int step(double time) {
    MPIDATA_TRY(enter("mpidata_step"));
    if (mpidata_calls.alone && !mpidata_is_finite(time)) return mpidata_calls_not_finite();
    if (!mpidata_calls.alone) return transport->step(time);
    mpidata_calls.step++;
    return MPIDATA_SUCCESS;
}

int mpidata_step(double time) { MPIDATA_CALLED; return settle(step(time)); }

/* -- next, fail, finalize ------------------------------------------------------------------------------------------- */

static int check_committed(void) {
    const mpidata_plan *plan = mpidata_calls.plan;
    for (int i = 0; i < mpidata_plan_counts(plan) && !mpidata_calls.failed && !mpidata_calls.cancelled; i++) {
        if (!mpidata_calls.counts[i] || plan->fields[i % plan->n_fields].per_simulation) continue;
        (void)mpidata_error(MPIDATA_ERR_ORDER, "Field '%s' was put, but no mpidata_step followed",
                            plan->fields[i % plan->n_fields].name);
        return mpidata_calls_misuse(MPIDATA_ERR_ORDER, "Call mpidata_step after the puts of each step, the last one included.");
    }
    return MPIDATA_SUCCESS;
}

static int close_simulation(mpidata_done *done) {
    *done = (mpidata_done){.simulation = -1};
    MPIDATA_TRY(transport->complete());
    if (mpidata_calls.running && !mpidata_calls.stopping) {
        MPIDATA_TRY(check_committed());
        *done = (mpidata_done){mpidata_calls.simulation, mpidata_calls.step, mpidata_calls.failed};
    }
    transport->drop();
    mpidata_calls_empty_step();
    mpidata_calls.running = mpidata_calls.failed = mpidata_calls.lame = mpidata_calls.cancelled = 0;
    return MPIDATA_SUCCESS;
}

static int next_in_job(int64_t *simulation) {
    mpidata_done done;
    MPIDATA_TRY(close_simulation(&done));
    return transport->next(&done, simulation);
}

static int next(int64_t *simulation) {
    MPIDATA_TRY(refuse_forked());
    if (!simulation) return mpidata_error(MPIDATA_ERR_ARGUMENT, "mpidata_next: simulation is NULL.");
    if (mpidata_calls.state != MPIDATA_JOINED) return need_simulation("mpidata_next");
    if (mpidata_calls.broken) return mpidata_calls.broken;
    int status = MPIDATA_SUCCESS;
    if (mpidata_calls.no_more || (mpidata_calls.alone && mpidata_calls.running)) status = MPIDATA_END;
    else if (mpidata_calls.alone) *simulation = 0;
    else status = next_in_job(simulation);
    if (status == MPIDATA_END) mpidata_calls.no_more = 1;
    mpidata_calls.running = !status;
    MPIDATA_TRY(status);
    mpidata_calls.simulation = *simulation;
    mpidata_calls.step = 0;
    return MPIDATA_SUCCESS;
}

int mpidata_next(int64_t *simulation) { MPIDATA_CALLED; return settle(next(simulation)); }

static int fail(const char *reason, int how) {
    MPIDATA_TRY(enter("mpidata_fail"));
    if (!reason) reason = "no reason given";
    if (mpidata_calls.alone) (void)fprintf(stderr, "mpidata: the simulation is abandoned: %s\n", reason);
    if (mpidata_calls.alone) return MPIDATA_SUCCESS;
    MPIDATA_TRY(transport->fail(reason, how));
    if (mpidata_calls.cancelled) return MPIDATA_CANCELLED;
    transport->drop();
    mpidata_calls_empty_step();
    mpidata_calls.failed = how;
    return MPIDATA_SUCCESS;
}

int mpidata_fail(const char *reason) { MPIDATA_CALLED; return settle(fail(reason, MPIDATA_GIVEN_UP)); }

int mpidata_fail_try(const char *reason) { MPIDATA_CALLED; return settle(fail(reason, MPIDATA_TRY_FAILED)); }

static int leave(void) {
    mpidata_done done;
    if (mpidata_calls.broken) return mpidata_calls.broken;
    MPIDATA_TRY(close_simulation(&done));
    return transport->leave(&done);
}

int mpidata_finalize(void) {
    MPIDATA_CALLED;
    MPIDATA_TRY(refuse_forked());
    if (mpidata_calls.state != MPIDATA_JOINED) return need_simulation("mpidata_finalize");
    int status = in_job() ? settle(leave()) : mpidata_calls.broken;
    mpidata_maps_close();
    transport->close();
    mpidata_strided_close();
    mpidata_device_close();
    free(mpidata_calls.counts);
    free(mpidata_calls.constants);
    mpidata_calls.counts = mpidata_calls.constants = NULL;
    mpidata_calls.state = MPIDATA_LEFT;
    return status == MPIDATA_END ? MPIDATA_SUCCESS : status;
}
