#include "program/single_run.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "program/text.h"

void mpidata_alone_say_so(void) {
    (void)fprintf(stderr,
                  "mpidata: started outside a job: one simulation, parameters from MPIDATA_PARAM_<NAME>, data dropped. "
                  "Start a job with: mpidata run job.yaml\n");
}

/* `variable` gets the name of the one that was found. */
static const char *find(const char *name, char variable[256]) {
    (void)snprintf(variable, 256, "MPIDATA_PARAM_%.200s", name);
    const char *text = getenv(variable);
    if (text) return text;
    for (char *c = variable; *c; c++) *c = mpidata_upper(*c);
    return getenv(variable);
}

const char *mpidata_alone_text(const char *name) {
    char variable[256];
    const char *text = find(name, variable);
    return text ? text : "";
}

int mpidata_alone_param(const char *name, double *value) {
    char variable[256];
    const char *text = find(name, variable);
    *value = 0.0;
    if (!text) return MPIDATA_SUCCESS;
    if (mpidata_number(text, value)) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_PARAMETER, "%s='%.200s' is not a finite number, such as 0.5", variable, text);
}
