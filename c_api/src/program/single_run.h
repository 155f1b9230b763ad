/* A linked solver run outside a job: one simulation, parameters from the environment, data dropped. */
#ifndef MPIDATA_SINGLE_RUN_H
#define MPIDATA_SINGLE_RUN_H

#include "mpidata.h"

void mpidata_alone_say_so(void);
int mpidata_alone_param(const char *name, double *value);
const char *mpidata_alone_text(const char *name); /* "" if unset */

#endif
