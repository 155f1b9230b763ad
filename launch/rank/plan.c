/* The plan of the job, and the arguments of a program that runs one simulation. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "containers/text_list.h"
#include "fill.h"
#include "process.h"
#include "rank.h"

mpidata_plan read_plan(void)
{
    char *path = print("%s/" MPIDATA_RUN_PLAN, me.run_folder), *text = NULL, wrong[MPIDATA_PLAN_WRONG];
    FILE *file = open_plan(path);
    size_t room = 0;
    const ssize_t length = getdelim(&text, &room, 0, file);
    mpidata_plan plan;
    switch (mpidata_plan_read(length > 0 ? text : "", &plan, wrong)) {
    case MPIDATA_PLAN_GOOD: break;
    case MPIDATA_PLAN_BAD: refuse("%s %s. Start the job with `mpidata run`, and with one version of mpidata.", path, wrong);
    default: refuse("Out of memory while reading the plan. Rank %ld. Give the job more memory.", me.rank);
    }
    free(text);
    free(path);
    fclose(file);
    return plan;
}

const char *case_folder(const mpidata_plan *plan, char **assignments)
{
    FILE *file = me.spawned && me.role == MPIDATA_ROLE_SOLVER && plan->per_simulation
        ? fopen(print("%s/" MPIDATA_RUN_CASE, me.run_folder), "re") : NULL;
    char *line = NULL, *in = print("%s/cases", me.run_folder);
    const char *simulation = mpidata_texts_value(assignments, "simulation", 10);
    size_t room = 0;
    if (!file) return NULL;
    while (getline(&line, &room, file) > 0)
        if (!strncmp(line, "in ", 3)) in = unescape(print("%.*s", (int)strcspn(line + 3, "\n"), line + 3));
    free(line);
    fclose(file);
    return print("%s/%s-g%ld", in, simulation ? simulation : "", me.index);
}

static void call_carrier(const char *what, char **assignments)
{
    const size_t n = mpidata_texts_count(assignments);
    char **arguments = calloc(n + 5, sizeof *arguments), *folder = own_folder();
    if (!folder || !arguments) return;
    arguments[0] = print("%s/mpidata-carrier", folder);
    free(folder);
    arguments[1] = print("%s", what);
    arguments[2] = print("%s", me.run_folder);
    arguments[3] = print("%ld", me.index);
    memcpy(arguments + 4, assignments, n * sizeof *arguments);
    const pid_t child = fork();
    if (child == 0) {
        execv(arguments[0], arguments);
        _exit(127);
    }
    if (child > 0) (void)waitpid(child, NULL, 0);
    free(arguments);
}

void end_case(char **assignments, int failed) { call_carrier(failed ? "--failed-case" : "--end-case", assignments); }

void end_cases(void)
{
    char *none = NULL;
    if (!access(print("%s/" MPIDATA_RUN_CASE, me.run_folder), F_OK)) call_carrier("--end-cases", &none);
}

void fill_in(char **arguments, char **assignments)
{
    for (; *arguments; arguments++) {
        char *unknown, *filled = fill(*arguments, assignments, &unknown);
        if (!filled)
            refuse("There is no value for '{%s}' in the arguments of the solver program. Solver of group %ld. Correct"
                   " 'solvers.program'.", unknown ? unknown : "", me.index);
        *arguments = filled;
    }
}
