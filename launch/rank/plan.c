/* The plan of the job, and the arguments of a program that is started for one simulation. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fill.h"
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
