/* The plan of the job, and the arguments of a program that is started for one simulation. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
