/* The plan of the job, and the arguments of a program that is started for one simulation. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rank.h"

static void append(char ***list, const char *value)
{
    size_t n = 0;
    while (*list && (*list)[n]) n++;
    char **longer = realloc(*list, (n + 2) * sizeof *longer);
    if (!longer) refuse("Out of memory while reading the plan. Rank %ld. Give the job more memory.", me.rank);
    longer[n] = print("%s", value);
    longer[n + 1] = NULL;
    *list = longer;
}

static void take(plan_t *plan, const char *key, const char *value, int *role)
{
    const struct { const char *key; long *value; } numbers[] = {
        {"world", &plan->world}, {"trainers", &plan->trainers}, {"groups", &plan->groups}, {"spares", &plan->spares},
        {"ranks_per_group", &plan->ranks_per_group}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(key, numbers[i].key) == 0) *numbers[i].value = number(value);
    if (strcmp(key, "folder") == 0) plan->folder = print("%s", value);
    if (strcmp(key, "start") == 0) plan->spawn = strcmp(value, "spawn") == 0;
    if (strcmp(key, "lifetime") == 0) plan->per_simulation = strcmp(value, "simulation") == 0;
    if (strcmp(key, "fault_tolerance") == 0) plan->fault_tolerant = strcmp(value, "ulfm") == 0;
    if (strcmp(key, "timeout_s") == 0) plan->timeout_s = strtod(value, NULL);
    if (strcmp(key, "join_timeout_s") == 0) plan->join_timeout_s = strtod(value, NULL);
    if (strcmp(key, "start_timeout_s") == 0) plan->start_timeout_s = strtod(value, NULL);
    if (strcmp(key, "program") == 0)
        for (*role = N_ROLES - 1; *role >= 0 && strcmp(value, ROLES[*role]) != 0; --*role) continue;
    if (*role >= 0 && strcmp(key, "argument") == 0) append(&plan->arguments[*role], value);
    if (*role >= 0 && strcmp(key, "environment") == 0) append(&plan->environment[*role], value);
}

plan_t read_plan(void)
{
    plan_t plan = {.world = -1, .trainers = -1, .groups = -1, .ranks_per_group = -1};
    char *path = print("%s/private/plan", me.run_folder), *line = NULL;
    FILE *file = open_plan(path);
    size_t room = 0;
    ssize_t length;
    int role = -1;
    for (long at = 1; (length = getline(&line, &room, file)) >= 0; at++) {
        if (length && line[length - 1] == '\n') line[length - 1] = 0;
        if (at == 1 && strcmp(line, "mpidata-plan 1") != 0)
            refuse("%s begins with '%s', not 'mpidata-plan 1'. Start the job with one version of mpidata.", path, line);
        char *value = strchr(line, ' ');
        if (!value) continue;
        *value++ = 0;
        take(&plan, line, value, &role);
    }
    free(line);
    fclose(file);
    const long in_world = plan.spawn ? 0 : plan.groups + plan.spares;
    if (!plan.folder || plan.world < 1 || plan.trainers < 0 || plan.groups < 0 || plan.spares < 0
        || plan.ranks_per_group < 1 || plan.world != 1 + plan.trainers + in_world * plan.ranks_per_group)
        refuse("%s has no complete layout of the ranks. Start the job with `mpidata run`.", path);
    return plan;
}

/* The value of a name that is `length` long. */
static const char *value_of(const char *name, size_t length, char **assignments)
{
    for (; *assignments; assignments++)
        if (strncmp(*assignments, name, length) == 0 && (*assignments)[length] == '=') return *assignments + length + 1;
    refuse("There is no value for '{%.*s}' in the arguments of the solver program. Solver of group %ld. Correct"
           " 'solvers.program'.", (int)length, name, me.index);
}

static char *filled_in(const char *text, char **assignments)
{
    char *result = print("%s", "");
    while (*text) {
        const size_t plain = strcspn(text, "{}"), name = strcspn(text + plain + (text[plain] != 0), "}");
        const char *brace = text + plain, *value = "";
        char *longer;
        if (*brace && brace[1] == *brace) { /* a literal one is doubled */
            longer = print("%s%.*s", result, (int)plain + 1, text);
            text = brace + 2;
        } else {
            if (*brace) value = value_of(brace + 1, name, assignments);
            longer = print("%s%.*s%s", result, (int)plain, text, value);
            text = *brace && brace[1 + name] ? brace + 2 + name : brace + strlen(brace);
        }
        free(result);
        result = longer;
    }
    return result;
}

void fill_in(char **arguments, char **assignments)
{
    for (; *arguments; arguments++) *arguments = filled_in(*arguments, assignments);
}
