#define _POSIX_C_SOURCE 200809L
#include "plan_text/plan_text.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "containers/array.h"
#include "containers/text_list.h"
#include "program/text.h"
#include "plan_text/plan_fields.h"

static const char header[] = "mpidata-plan 1";
static const char *const role_names[MPIDATA_ROLES] = {
    [MPIDATA_ROLE_SCHEDULER] = "scheduler", [MPIDATA_ROLE_TRAINER] = "trainer",
    [MPIDATA_ROLE_SOLVER] = "solver",       [MPIDATA_ROLE_LOADER] = "loader",
    [MPIDATA_ROLE_SERVER] = "server",       [MPIDATA_ROLE_INFERENCE] = "inference",
    [MPIDATA_ROLE_LEARNER] = "learner",     [MPIDATA_ROLE_MATE] = "mate",
};
/* State of the parser: the plan, and the role whose program the lines are about; -1: none. */
typedef struct {
    mpidata_plan *plan;
    int role;
    char *wrong;
} reader;

static int bad(const reader *r, const char *what) {
    (void)snprintf(r->wrong, MPIDATA_PLAN_WRONG, "%s", what);
    return MPIDATA_PLAN_BAD;
}

/* A number above 0. */
static int parse_positive(const char *text, double *value) {
    return mpidata_number(text, value) && *value > 0 ? MPIDATA_PLAN_GOOD : MPIDATA_PLAN_BAD;
}

/* Arguments for finding the index of a word. */
#define WORDS(of) of, (int)(sizeof of / sizeof *of)

static int parse_word(const char *text, const char *const *words, int n, int *value) {
    for (*value = 0; *value < n; ++*value)
        if (!strcmp(words[*value], text)) return MPIDATA_PLAN_GOOD;
    return MPIDATA_PLAN_BAD;
}

/* Keep a text, which may be given only once. */
static int keep_text(const char *text, char **value) {
    if (*value) return MPIDATA_PLAN_BAD;
    return (*value = strdup(text)) ? MPIDATA_PLAN_GOOD : MPIDATA_PLAN_NO_MEMORY;
}

static int append_text(const char *text, char ***list) {
    return mpidata_texts_append(list, text) ? MPIDATA_PLAN_GOOD : MPIDATA_PLAN_NO_MEMORY;
}

static int append_parameter(mpidata_plan *plan, const char *name) {
    if (strlen(name) == 0 || strlen(name) >= MPIDATA_NAME_MAX) return MPIDATA_PLAN_BAD;
    if (!mpidata_array_resize(&plan->parameters, plan->n_parameters + 1, sizeof *plan->parameters))
        return MPIDATA_PLAN_NO_MEMORY;
    strcpy(plan->parameters[plan->n_parameters++], name);
    return MPIDATA_PLAN_GOOD;
}

static int parse_number(mpidata_plan *plan, const char *key, const char *value, int *is_number) {
    const struct { const char *key; int *target; int low; } ints[] = {
        {"world", &plan->world, 1},     {"trainers", &plan->trainers, 1},
        {"groups", &plan->groups, 0},   {"ranks_per_group", &plan->ranks_per_group, 1},
        {"in_flight", &plan->in_flight, 1},   {"spares", &plan->spares, 0},
        {"loaders", &plan->loaders, 0}, {"loader_spares", &plan->loader_spares, 0},
        {"carried", &plan->carried, 0}, {"carried_each", &plan->carried_each, 0},
        {"journal", &plan->journal, 0}, {"capacity_in_bytes", &plan->capacity_in_bytes, 0},
        {"samples_window", &plan->samples_window, 1}, {"samples_stride", &plan->samples_stride, 1},
        {"samples_run", &plan->samples_run, 1}, {"trainers_at_least", &plan->trainers_at_least, 0},
        {"servers", &plan->servers, 0}, {"ranks_per_replica", &plan->ranks_per_replica, 1},
        {"trainer_spares", &plan->trainer_spares, 0},
        {"inference", &plan->inference, 0}, {"inference_spares", &plan->inference_spares, 0},
        {"learner", &plan->learner, 0}, {"learner_spares", &plan->learner_spares, 0},
    };
    const struct { const char *key; int64_t *target; } longs[] = {
        {"simulations", &plan->simulations}, {"validation", &plan->validation},
        {"capacity", &plan->capacity},       {"watermark", &plan->watermark},
    };
    const struct { const char *key; double *target; } reals[] = {
        {"timeout_s", &plan->timeout_s}, {"start_timeout_s", &plan->start_timeout_s},
        {"join_timeout_s", &plan->join_timeout_s}, {"trainers_timeout_s", &plan->trainers_timeout_s},
        {"loader_timeout_s", &plan->loader_timeout_s}, {"loader_start_timeout_s", &plan->loader_start_timeout_s},
        {"repeats", &plan->repeats},
        {"inference_timeout_s", &plan->inference_timeout_s},
        {"inference_start_timeout_s", &plan->inference_start_timeout_s},
    };
    int64_t parsed = 0;
    *is_number = 1;
    for (size_t i = 0; i < sizeof ints / sizeof ints[0]; i++)
        if (!strcmp(key, ints[i].key)) {
            int status = mpidata_plan_integer(value, ints[i].low, INT_MAX, &parsed);
            *ints[i].target = (int)parsed;
            return status;
        }
    for (size_t i = 0; i < sizeof longs / sizeof longs[0]; i++)
        if (!strcmp(key, longs[i].key)) return mpidata_plan_integer(value, 0, INT64_MAX / 4, longs[i].target);
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++)
        if (!strcmp(key, reals[i].key)) return parse_positive(value, reals[i].target);
    *is_number = !strcmp(key, "seed");
    if (*is_number && mpidata_plan_integer(value, 0, INT64_MAX, &parsed)) return MPIDATA_PLAN_BAD;
    if (*is_number) plan->seed = (uint64_t)parsed;
    return MPIDATA_PLAN_GOOD;
}

/* Keys that only the scheduler needs are ignored here. */
static int parse_line(reader *r, const char *key, const char *value) {
#define NAME(in_c, name) #name,
    static const char *const policies[] = {MPIDATA_POLICIES(NAME)}, *const tails[] = {"drop", "repeat"};
    static const char *const starts[] = {"split", "spawn"}, *const lifetimes[] = {"pool", "simulation"};
    static const char *const tolerances[] = {"none", "ulfm"};
    mpidata_plan *plan = r->plan;
    int is_number, status = parse_number(plan, key, value, &is_number);
    if (is_number) return status;
    if (!strcmp(key, "policy")) return parse_word(value, WORDS(policies), &plan->policy);
    if (!strcmp(key, "tail")) return parse_word(value, WORDS(tails), &plan->tail);
    if (!strcmp(key, "start")) return parse_word(value, WORDS(starts), &plan->spawn);
    if (!strcmp(key, "loader_start")) return parse_word(value, WORDS(starts), &plan->loaders_spawn);
    if (!strcmp(key, "lifetime")) return parse_word(value, WORDS(lifetimes), &plan->per_simulation);
    if (!strcmp(key, "fault_tolerance")) return parse_word(value, WORDS(tolerances), &plan->fault_tolerant);
    if (!strcmp(key, "run")) return keep_text(value, &plan->run);
    if (!strcmp(key, "folder")) return keep_text(value, &plan->folder);
    if (!strcmp(key, "replay")) return keep_text(value, &plan->replay);
    if (!strcmp(key, "statistics")) return keep_text(value, &plan->statistics);
    if (!strcmp(key, "parameter")) return append_parameter(plan, value);
    if (!strcmp(key, "whole")) return append_text(value, &plan->whole);
    if (!strcmp(key, "text")) return strchr(value, ' ') ? append_text(value, &plan->texts) : MPIDATA_PLAN_BAD;
    if (!strcmp(key, "length")) return mpidata_plan_append_length(plan, value);
    if (!strcmp(key, "field")) return mpidata_plan_append_field(plan, value);
    if (!strcmp(key, "index")) return mpidata_plan_index(plan, value);
    if (!strcmp(key, "optional")) return mpidata_plan_optional(plan, value);
    if (!strcmp(key, "constant")) return mpidata_plan_constant(plan, value);
    if (!strcmp(key, "program")) return parse_word(value, WORDS(role_names), &r->role);
    int is_argument = !strcmp(key, "argument"), is_variable = !strcmp(key, "environment");
    if (!is_argument && !is_variable) return MPIDATA_PLAN_GOOD;
    if (r->role < 0 || (is_variable && !strchr(value, '='))) return MPIDATA_PLAN_BAD;
    return append_text(value, is_argument ? &plan->arguments[r->role] : &plan->environment[r->role]);
}

/* May exceed an int if the plan is invalid. */
static int64_t world_of(const mpidata_plan *plan) {
    int64_t groups = plan->spawn ? 0 : (int64_t)plan->groups + plan->spares;
    int64_t loaders = plan->loaders_spawn ? 0 : (int64_t)plan->loaders + plan->loader_spares;
    const int64_t asked = (int64_t)plan->inference + plan->inference_spares + plan->learner + plan->learner_spares;
    const int64_t mates = (int64_t)plan->trainers * (plan->ranks_per_replica - 1);
    return 1 + (int64_t)plan->trainers + mates + groups * plan->ranks_per_group + loaders + asked + plan->servers;
}

static int check_whole(const reader *r) {
    const mpidata_plan *plan = r->plan;
    if (!plan->world || !plan->trainers || !plan->ranks_per_group || plan->world != world_of(plan))
        return bad(r,
                   "has no complete layout of the ranks: 'world' is 1 + trainers and mates + the ranks of the groups + "
                      "loaders + inference + learner + servers");
    if (plan->ranks_per_group > INT_MAX - 1 - plan->trainers - mpidata_plan_mates(plan)) return bad(r, "has a group with too many ranks");
    if (!plan->run || !plan->folder || !plan->in_flight || !plan->capacity || (plan->groups && !plan->n_fields))
        return bad(r, "lacks one of 'run', 'folder', 'in_flight', 'capacity' and 'field'");
    if (!plan->groups && !plan->loaders) return bad(r, "has neither groups nor loaders");
    if (plan->trainer_spares >= plan->trainers) return bad(r, "has more 'trainer_spares' than trainers");
    if (plan->loaders && !(plan->loader_timeout_s > 0 && plan->loader_start_timeout_s > 0))
        return bad(r, "lacks 'loader_timeout_s' or 'loader_start_timeout_s'");
    if (plan->inference && !(plan->inference_timeout_s > 0 && plan->inference_start_timeout_s > 0))
        return bad(r, "lacks 'inference_timeout_s' or 'inference_start_timeout_s'");
    if (plan->learner > 1 || (plan->learner_spares && !plan->learner))
        return bad(r, "has more than one 'learner', or only its spares");
    if (plan->samples_run < (plan->samples_window - 1) * (int64_t)plan->samples_stride)
        return bad(r, "has a 'samples_run' less than a window");
    if (plan->repeats != 0 && (plan->repeats < 1 || plan->policy != MPIDATA_POLICY_RESERVOIR))
        return bad(r, "has 'repeats' less than 1, or without a reservoir");
    return MPIDATA_PLAN_GOOD;
}

static int parse_lines(reader *r, char *copy) {
    char *rest = NULL, *line = strtok_r(copy, "\n", &rest);
    if (!line || strcmp(line, header)) {
        (void)snprintf(r->wrong, MPIDATA_PLAN_WRONG, "begins with '%.200s', not '%s'", line ? line : "", header);
        return MPIDATA_PLAN_BAD;
    }
    while ((line = strtok_r(NULL, "\n", &rest))) {
        char *value = strchr(line, ' ');
        if (value) *value++ = '\0';
        int status = value ? parse_line(r, line, value) : MPIDATA_PLAN_BAD;
        if (status == MPIDATA_PLAN_BAD)
            (void)snprintf(r->wrong, MPIDATA_PLAN_WRONG, "has a line that cannot be read: '%.100s%s%.100s'", line,
                           value ? " " : "", value ? value : "");
        if (status) return status;
    }
    int status = check_whole(r);
    return status ? status : mpidata_plan_statistics(r->plan, r->wrong);
}

int mpidata_plan_read(const char *text, mpidata_plan *plan, char *wrong) {
    memset(plan, 0, sizeof *plan);
    plan->samples_window = plan->samples_stride = plan->samples_run = plan->ranks_per_replica = 1;
    plan->trainers_timeout_s = 600; /* default, as in mpidata/run/plan/ranks.py, where it is then not written */
    char *copy = strdup(text);
    if (!copy) return MPIDATA_PLAN_NO_MEMORY;
    reader r = {.plan = plan, .role = -1, .wrong = wrong};
    int status = parse_lines(&r, copy);
    free(copy);
    if (status) mpidata_plan_free(plan);
    return status;
}

void mpidata_plan_free(mpidata_plan *plan) {
    for (int role = 0; role < MPIDATA_ROLES; role++) {
        mpidata_texts_free(plan->arguments[role]);
        mpidata_texts_free(plan->environment[role]);
    }
    free(plan->run);
    free(plan->folder);
    free(plan->replay);
    free(plan->statistics);
    free(plan->parameters);
    mpidata_texts_free(plan->whole);
    mpidata_texts_free(plan->texts);
    free(plan->fields);
    free(plan->lengths);
    for (int i = 0; i < plan->n_changes; i++) free(plan->changes[i].training);
    free(plan->changes);
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
    const int first_mate = 1 + plan->trainers, first_solver = first_mate + mpidata_plan_mates(plan);
    if (rank < first_solver) {
        *index = (rank - first_mate) / (plan->ranks_per_replica - 1);
        *rank_in_group = 1 + (rank - first_mate) % (plan->ranks_per_replica - 1);
        return MPIDATA_ROLE_MATE;
    }
    if (rank >= plan->world - plan->servers) {
        *index = rank - (plan->world - plan->servers);
        return MPIDATA_ROLE_SERVER;
    }
    const int first_learner = plan->world - plan->servers - mpidata_plan_world_learners(plan);
    if (rank >= first_learner) {
        *index = rank - first_learner;
        return MPIDATA_ROLE_LEARNER;
    }
    const int first_inference = first_learner - mpidata_plan_world_inference(plan);
    if (rank >= first_inference) {
        *index = rank - first_inference;
        return MPIDATA_ROLE_INFERENCE;
    }
    int solver = rank - first_solver, solvers = mpidata_plan_world_groups(plan) * plan->ranks_per_group;
    if (solver >= solvers) {
        *index = solver - solvers;
        return MPIDATA_ROLE_LOADER;
    }
    *index = solver / plan->ranks_per_group;
    *rank_in_group = solver % plan->ranks_per_group;
    return MPIDATA_ROLE_SOLVER;
}

int mpidata_plan_world_groups(const mpidata_plan *plan) { return plan->spawn ? 0 : plan->groups + plan->spares; }

int mpidata_plan_world_loaders(const mpidata_plan *plan) {
    return plan->loaders_spawn ? 0 : plan->loaders + plan->loader_spares;
}

int mpidata_plan_world_inference(const mpidata_plan *plan) { return plan->inference + plan->inference_spares; }

int mpidata_plan_mates(const mpidata_plan *plan) {
    return plan->ranks_per_replica > 1 ? plan->trainers * (plan->ranks_per_replica - 1) : 0;
}

int mpidata_plan_world_learners(const mpidata_plan *plan) { return plan->learner + plan->learner_spares; }

const char *mpidata_role_name(int role) {
    return role >= 0 && role < MPIDATA_ROLES ? role_names[role] : "unknown role";
}
