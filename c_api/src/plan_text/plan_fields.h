/* Parsing of the lines of a plan about fields and their lengths, for plan_reading.c. All return MPIDATA_PLAN_GOOD, _BAD or
 * _NO_MEMORY. */
#ifndef MPIDATA_PLAN_FIELDS_H
#define MPIDATA_PLAN_FIELDS_H

#include "plan_text/plan_text.h"

/* A whole number, and nothing else, within these limits. */
int mpidata_plan_integer(const char *text, int64_t low, int64_t high, int64_t *value);

int mpidata_plan_append_length(mpidata_plan *plan, const char *value);
int mpidata_plan_append_field(mpidata_plan *plan, const char *value);
int mpidata_plan_index(mpidata_plan *plan, const char *value);
int mpidata_plan_optional(mpidata_plan *plan, const char *name);
int mpidata_plan_constant(mpidata_plan *plan, const char *name);

/* Once all fields are known: which of them have statistics. wrong: as in mpidata_plan_read. */
int mpidata_plan_statistics(mpidata_plan *plan, char *wrong);

#endif
