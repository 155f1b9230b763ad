/* Command line and environment variables of the program. */
#define _GNU_SOURCE
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "carrier.h"
#include "containers/text_list.h"
#include "fill.h"
#include "job/run_files.h"
#include "program/text.h"
#include "solver/solver.h"

__attribute__((format(printf, 2, 3))) static int append(char ***list, const char *format, ...) {
    char *text = NULL;
    va_list values;
    va_start(values, format);
    const int length = vasprintf(&text, format, values);
    va_end(values);
    if (!mpidata_texts_append_own(list, length < 0 ? NULL : text))
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for starting the program.");
    return MPIDATA_SUCCESS;
}

/* The shortest text that preserves the value; a number of a continuous parameter keeps its point. */
static const char *number(double value, int is_whole, char *text, size_t size) {
    int digits = 15;
    double read;
    if (is_whole && value == rint(value)) { /* a validation value may lie between the values of a grid */
        (void)snprintf(text, size, "%.0f", value);
        return text;
    }
    do (void)snprintf(text, size - 2, "%.*g", digits, value);
    while (mpidata_number(text, &read) && read != value && ++digits <= 17);
    if (strspn(text, "-0123456789") == strlen(text)) strcat(text, ".0");
    return text;
}

static void upper(char *text) {
    for (; *text; text++) *text = mpidata_upper(*text);
}

int words_of_simulation(const mpidata_plan *plan, int64_t simulation, const double *parameters, char ***variables,
                        char ***placeholders) {
    char value[64], name[MPIDATA_NAME_MAX];
    MPIDATA_TRY(append(variables, "MPIDATA_SIMULATION=%lld", (long long)simulation));
    MPIDATA_TRY(append(placeholders, "simulation=%lld", (long long)simulation));
    for (int i = 0; i < plan->n_parameters; i++) {
        const char *text = mpidata_plan_text(plan, i, parameters[i]);
        if (!text) text = number(parameters[i], mpidata_texts_has(plan->whole, plan->parameters[i]), value, sizeof value);
        strcpy(name, plan->parameters[i]);
        MPIDATA_TRY(append(placeholders, "%s=%s", name, text));
        upper(name);
        MPIDATA_TRY(append(variables, "MPIDATA_PARAM_%s=%s", name, text));
    }
    return MPIDATA_SUCCESS;
}

/* Where an Open MPI puts its files, unless the user has set it: this carrier removes them. */
static int append_scratch(const ranks_t *ranks, char ***variables) {
    static const struct { const char *name; int in_memory; } all[] = {
        {"PRTE_MCA_prte_tmpdir_base", 0}, {"OMPI_MCA_orte_tmpdir_base", 0},
        {"OMPI_MCA_btl_sm_backing_directory", 1}, {"OMPI_MCA_btl_vader_backing_directory", 1}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (*ranks->scratch[all[i].in_memory] && !mpidata_texts_value(*variables, all[i].name, strlen(all[i].name)))
            MPIDATA_TRY(append(variables, "%s=%s", all[i].name, ranks->scratch[all[i].in_memory]));
    return MPIDATA_SUCCESS;
}

int words_of_start(const ranks_t *ranks, int group, char ***variables) {
    MPIDATA_TRY(append(variables, MPIDATA_CARRIER_VARIABLE "=%s:%s", ranks->path, ranks->token));
    MPIDATA_TRY(append(variables, MPIDATA_CARRIED_GROUP "=%d", group));
    MPIDATA_TRY(append(variables, MPIDATA_CARRIED_MARK "=%s", ranks->plan->run));
    MPIDATA_TRY(append(variables, "PYTHONUNBUFFERED=1")); /* or the last words of a killed program are lost */
    for (char **pair = ranks->plan->environment[MPIDATA_ROLE_SOLVER]; pair && *pair; pair++)
        if (strncmp(*pair, "MPIDATA_NAMES=", 14)) MPIDATA_TRY(append(variables, "%s", *pair));
    return append_scratch(ranks, variables);
}

int words_fill(char **words, int n, char **values, char ***filled) {
    for (int i = 0; i < n && words[i]; i++) {
        char *unknown, *word = fill(words[i], values, &unknown);
        if (!word)
            return mpidata_error(MPIDATA_ERR_JOB, "There is no value for '{%s}' in '%.200s'. Correct 'solvers.program' or "
                                                  "'solvers.carried.launcher'.", unknown ? unknown : "", words[i]);
        const int status = append(filled, "%s", word);
        free(word);
        MPIDATA_TRY(status);
    }
    return MPIDATA_SUCCESS;
}

int words_of_case(const ranks_t *ranks, int group, const char *hosts, char ***values) {
    MPIDATA_TRY(append(values, "group=%d", group));
    MPIDATA_TRY(append(values, "try=%lld", (long long)mpidata_solver_try()));
    MPIDATA_TRY(append(values, "ranks=%d", ranks->plan->carried));
    return append(values, "hosts=%s", hosts);
}

int words_of_launcher(char **launcher, int n, const char *hosts, char ***filled) {
    char **values = NULL;
    int nodes = 1;
    for (const char *comma = hosts; (comma = strchr(comma, ',')); comma++) nodes++;
    MPIDATA_TRY(append(&values, "hosts=%s", hosts));
    MPIDATA_TRY(append(&values, "nodes=%d", nodes));
    const int status = words_fill(launcher, n, values, filled);
    mpidata_texts_free(values);
    return status;
}
