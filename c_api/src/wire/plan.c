#include "wire/plan.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    mpidata_dtype dtype;
    const char *name;
    size_t size;
} dtypes[] = {
    {MPIDATA_FLOAT32, "float32", 4}, {MPIDATA_FLOAT64, "float64", 8}, {MPIDATA_INT32, "int32", 4},
    {MPIDATA_INT64, "int64", 8},     {MPIDATA_UINT8, "uint8", 1},
};
enum { N_DTYPES = sizeof dtypes / sizeof dtypes[0] };

size_t mpidata_dtype_size(mpidata_dtype dtype) {
    for (int i = 0; i < N_DTYPES; i++)
        if (dtypes[i].dtype == dtype) return dtypes[i].size;
    return 0;
}

const char *mpidata_dtype_name(mpidata_dtype dtype) {
    for (int i = 0; i < N_DTYPES; i++)
        if (dtypes[i].dtype == dtype) return dtypes[i].name;
    return "no dtype";
}

MPI_Datatype mpidata_dtype_mpi(mpidata_dtype dtype) {
    switch (dtype) {
    case MPIDATA_FLOAT32: return MPI_FLOAT;
    case MPIDATA_FLOAT64: return MPI_DOUBLE;
    case MPIDATA_INT32: return MPI_INT32_T;
    case MPIDATA_INT64: return MPI_INT64_T;
    case MPIDATA_UINT8: return MPI_UINT8_T;
    }
    return MPI_DATATYPE_NULL;
}

static int bad_line(const char *line) {
    return mpidata_error(MPIDATA_ERR_JOB,
                         "The plan has a line that this library cannot read: '%.200s'. Use the mpidata command and "
                         "libmpidata of one installation.",
                         line);
}

static int parse_integer(const char *text, int64_t low, int64_t high, int64_t *value) {
    char *end;
    errno = 0;
    long long parsed = strtoll(text, &end, 10);
    if (errno || end == text || *end != '\0' || parsed < low || parsed > high) return -1;
    *value = parsed;
    return 0;
}

/* Seconds, more than none. */
static int parse_seconds(const char *text, double *value) {
    char *end;
    *value = strtod(text, &end);
    return end == text || *end != '\0' || !isfinite(*value) || *value <= 0 ? -1 : 0;
}

static int append_parameter(mpidata_plan *plan, const char *name) {
    if (strlen(name) == 0 || strlen(name) >= MPIDATA_NAME_MAX) return bad_line(name);
    void *grown = realloc(plan->parameters, (size_t)(plan->n_parameters + 1) * sizeof *plan->parameters);
    if (!grown) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory while reading the plan.");
    plan->parameters = grown;
    strcpy(plan->parameters[plan->n_parameters++], name);
    return MPIDATA_SUCCESS;
}

/* "temperature float32 2 64 64" */
static int append_field(mpidata_plan *plan, const char *value) {
    mpidata_field field = {.dtype = 0, .elements = 1};
    char copy[512], *rest = NULL;
    if (strlen(value) >= sizeof copy) return bad_line(value);
    strcpy(copy, value);
    const char *name = strtok_r(copy, " ", &rest), *dtype = strtok_r(NULL, " ", &rest);
    const char *ndim = strtok_r(NULL, " ", &rest);
    int64_t parsed;
    if (!name || !dtype || !ndim || strlen(name) >= MPIDATA_NAME_MAX) return bad_line(value);
    if (parse_integer(ndim, 0, MPIDATA_MAX_NDIM, &parsed)) return bad_line(value);
    strcpy(field.name, name);
    field.ndim = (int)parsed;
    for (int i = 0; i < N_DTYPES; i++)
        if (!strcmp(dtypes[i].name, dtype)) field.dtype = dtypes[i].dtype;
    if (!field.dtype) return bad_line(value);
    field.element_size = mpidata_dtype_size(field.dtype);
    for (int d = 0; d < field.ndim; d++) {
        const char *extent = strtok_r(NULL, " ", &rest);
        if (!extent || parse_integer(extent, 1, INT_MAX, &field.shape[d])) return bad_line(value);
        if (field.elements > INT_MAX / field.shape[d]) return bad_line(value);
        field.elements *= field.shape[d];
    }
    if (strtok_r(NULL, " ", &rest)) return bad_line(value);
    plan->slot_bytes += ((size_t)field.elements * field.element_size + 63) & ~(size_t)63;
    void *grown = realloc(plan->fields, (size_t)(plan->n_fields + 1) * sizeof *plan->fields);
    if (!grown) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory while reading the plan.");
    plan->fields = grown;
    plan->fields[plan->n_fields++] = field;
    return MPIDATA_SUCCESS;
}

static int parse_word(const char *value, const char *const *words, int n) {
    for (int i = 0; i < n; i++)
        if (!strcmp(words[i], value)) return i;
    return -1;
}

/* Keys for the launcher only are left alone here. */
static int parse_line(mpidata_plan *plan, const char *key, const char *value) {
    static const char *const policies[] = {"fifo", "firo", "reservoir"}, *const tails[] = {"drop", "repeat"};
    static const char *const starts[] = {"split", "spawn"};
    struct { const char *key; int *target; int low; } ints[] = {
        {"world", &plan->world, 1},     {"trainers", &plan->trainers, 1},
        {"groups", &plan->groups, 0},   {"ranks_per_group", &plan->ranks_per_group, 1},
        {"window", &plan->window, 1},   {"spares", &plan->spares, 0},
    };
    struct { const char *key; int64_t *target; } longs[] = {
        {"simulations", &plan->simulations}, {"validation", &plan->validation},
        {"capacity", &plan->capacity},       {"watermark", &plan->watermark},
    };
    int64_t parsed;
    for (size_t i = 0; i < sizeof ints / sizeof ints[0]; i++)
        if (!strcmp(key, ints[i].key)) {
            if (parse_integer(value, ints[i].low, INT_MAX, &parsed)) return bad_line(value);
            *ints[i].target = (int)parsed;
            return MPIDATA_SUCCESS;
        }
    for (size_t i = 0; i < sizeof longs / sizeof longs[0]; i++)
        if (!strcmp(key, longs[i].key))
            return parse_integer(value, 0, INT64_MAX / 4, longs[i].target) ? bad_line(value) : MPIDATA_SUCCESS;
    if (!strcmp(key, "seed")) {
        if (parse_integer(value, 0, INT64_MAX, &parsed)) return bad_line(value);
        plan->seed = (uint64_t)parsed;
    } else if (!strcmp(key, "policy")) {
        if ((plan->policy = parse_word(value, policies, 3)) < 0) return bad_line(value);
    } else if (!strcmp(key, "tail")) {
        if ((plan->tail = parse_word(value, tails, 2)) < 0) return bad_line(value);
    } else if (!strcmp(key, "start")) {
        if ((plan->spawn = parse_word(value, starts, 2)) < 0) return bad_line(value);
    } else if (!strcmp(key, "timeout_s") || !strcmp(key, "start_timeout_s")) {
        if (parse_seconds(value, *key == 's' ? &plan->start_timeout_s : &plan->timeout_s)) return bad_line(value);
    } else if (!strcmp(key, "run")) {
        if (plan->run) return bad_line(value);
        if (!(plan->run = strdup(value))) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory while reading the plan.");
    } else if (!strcmp(key, "parameter")) {
        return append_parameter(plan, value);
    } else if (!strcmp(key, "field")) {
        return append_field(plan, value);
    }
    return MPIDATA_SUCCESS;
}

/* More than an int holds where the plan makes no sense. */
static int64_t world_of(const mpidata_plan *plan) {
    int64_t groups = plan->spawn ? 0 : (int64_t)plan->groups + plan->spares;
    return 1 + (int64_t)plan->trainers + groups * plan->ranks_per_group;
}

static int parse_lines(mpidata_plan *plan, char *copy) {
    char *rest = NULL, *line = strtok_r(copy, "\n", &rest);
    if (!line || strcmp(line, "mpidata-plan 1")) return bad_line(line ? line : "(empty)");
    while ((line = strtok_r(NULL, "\n", &rest))) {
        char *value = strchr(line, ' ');
        if (!value) return bad_line(line);
        *value++ = '\0';
        MPIDATA_TRY(parse_line(plan, line, value));
    }
    if (!plan->world || !plan->trainers || !plan->ranks_per_group || !plan->window || !plan->n_fields ||
        !plan->capacity || !plan->run)
        return bad_line("(a key is missing)");
    if (plan->world != world_of(plan)) return bad_line("(world is not 1 + trainers + the groups' ranks)");
    if (plan->ranks_per_group > INT_MAX - 1 - plan->trainers) return bad_line("(a group has too many ranks)");
    return MPIDATA_SUCCESS;
}

int mpidata_plan_parse(const char *text, mpidata_plan *plan) {
    memset(plan, 0, sizeof *plan);
    char *copy = strdup(text);
    if (!copy) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory while reading the plan.");
    int status = parse_lines(plan, copy);
    free(copy);
    if (status) mpidata_plan_free(plan);
    return status;
}

void mpidata_plan_free(mpidata_plan *plan) {
    free(plan->run);
    free(plan->parameters);
    free(plan->fields);
    memset(plan, 0, sizeof *plan);
}

int mpidata_plan_role(const mpidata_plan *plan, int rank, int *index, int *rank_in_group) {
    *index = 0;
    *rank_in_group = 0;
    if (rank == 0) return MPIDATA_ROLE_SCHEDULER;
    if (rank <= plan->trainers) {
        *index = rank - 1;
        return MPIDATA_ROLE_TRAINER;
    }
    int solver = rank - 1 - plan->trainers;
    *index = solver / plan->ranks_per_group;
    *rank_in_group = solver % plan->ranks_per_group;
    return MPIDATA_ROLE_SOLVER;
}

int mpidata_plan_world_groups(const mpidata_plan *plan) { return plan->spawn ? 0 : plan->groups + plan->spares; }

const char *mpidata_role_name(int role) {
    static const char *const names[] = {"scheduler", "trainer", "solver"};
    return role >= 0 && role <= 2 ? names[role] : "unknown role";
}

int mpidata_plan_has(const mpidata_plan *plan, int64_t simulation) {
    return simulation >= 0 && simulation < plan->simulations + plan->validation;
}

int mpidata_plan_trainer(const mpidata_plan *plan, int64_t simulation, int64_t step) {
    return (int)((simulation + step) % plan->trainers);
}

int mpidata_plan_field(const mpidata_plan *plan, const char *name) {
    for (int i = 0; i < plan->n_fields; i++)
        if (!strcmp(plan->fields[i].name, name)) return i;
    return -1;
}

int mpidata_plan_parameter(const mpidata_plan *plan, const char *name) {
    for (int i = 0; i < plan->n_parameters; i++)
        if (!strcmp(plan->parameters[i], name)) return i;
    return -1;
}

static void append_name(char *text, size_t size, const char *name, int i, int n) {
    size_t used = strlen(text);
    const char *separator = i == 0 ? "" : i == n - 1 ? " and " : ", ";
    if (used < size) (void)snprintf(text + used, size - used, "%s'%s'", separator, name);
}

void mpidata_plan_field_names(const mpidata_plan *plan, char *text, size_t size) {
    text[0] = '\0';
    for (int i = 0; i < plan->n_fields; i++) append_name(text, size, plan->fields[i].name, i, plan->n_fields);
}

void mpidata_plan_parameter_names(const mpidata_plan *plan, char *text, size_t size) {
    text[0] = '\0';
    for (int i = 0; i < plan->n_parameters; i++) append_name(text, size, plan->parameters[i], i, plan->n_parameters);
}
