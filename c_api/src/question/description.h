/* The description of a question: the first part of its parcel. It names the arrays that are sent, whose values are the other
 * parts, and those that are requested. mpidata/inference/questions.py reads it. The first part of an answer has its
 * version. */
#ifndef MPIDATA_DESCRIPTION_H
#define MPIDATA_DESCRIPTION_H

#include "wire/plan.h"

#define MPIDATA_QUESTION_MAGIC 0x3144504Bu

enum {
    MPIDATA_PARCEL_QUESTION = 1, /* kind of its parcel, and of the answer's */
    MPIDATA_ARRAYS_MAX = 64      /* of a question, in and out each */
};

typedef struct {
    uint32_t magic;
    int32_t n_in, n_out, unused;
    int64_t rows; /* the first extent of each array */
} mpidata_description;

/* n_in + n_out of them follow. */
typedef struct {
    char name[MPIDATA_NAME_MAX];
    int32_t dtype, ndim;
    int64_t shape[MPIDATA_MAX_NDIM];
} mpidata_described;

typedef struct {
    int64_t version; /* of the weights; 0: none was published */
} mpidata_answer_head;

/* Check the arrays of a question; on an error *advice has the fix, and the sentence has no full stop. */
int mpidata_question_check(const mpidata_array *in, int n_in, const mpidata_array *out, int n_out, const char **advice);

size_t mpidata_array_bytes(const mpidata_array *array);

/* The description of checked arrays, in memory of malloc; NULL: memory is exhausted. */
mpidata_description *mpidata_describe(const mpidata_array *in, int n_in, const mpidata_array *out, int n_out,
                                      size_t *bytes);

#endif
