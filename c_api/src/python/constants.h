/* Definitions that Python takes from C: status codes, dtypes, kinds of messages, roles, limits, deadlines, names in the run
 * folder, and shared structures. One function of libmpidata_carried, so that no MPI is needed. */
#ifndef MPIDATA_CONSTANTS_H
#define MPIDATA_CONSTANTS_H

#include <stdint.h>

/* mpidata/native/constants.py reads this one structure without asking for its layout. */
typedef struct {
    const char *group; /* "status", "number", "text", a group of dtypes, or the name of a structure; NULL after the last one */
    const char *name;  /* without MPIDATA_; of a field of a structure: "closed.steps" within a union; "": all of it */
    const char *text;  /* the text; the kind of a dtype or field as in Python's `struct`, or a structure's name */
    int64_t number;    /* the number; the offset of a field */
    int64_t bytes;     /* of a dtype, field or structure */
} mpidata_constant;

const mpidata_constant *mpidata_constants(void);

#endif
