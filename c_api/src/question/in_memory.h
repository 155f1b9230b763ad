/* A question in memory that two processes share: its description, then the values of each array, aligned to 64 bytes, inputs
 * first. Needs no MPI. */
#ifndef MPIDATA_QUESTION_IN_MEMORY_H
#define MPIDATA_QUESTION_IN_MEMORY_H

#include "question/description.h"

/* A question that was read from there: a copy of its description, and the arrays, whose values stay in that memory. */
typedef struct {
    mpidata_description head;
    mpidata_described described[2 * MPIDATA_ARRAYS_MAX];
    mpidata_array arrays[2 * MPIDATA_ARRAYS_MAX]; /* head.n_in, then head.n_out */
} mpidata_read_question;

/* Its size in bytes; UINT64_MAX: too large. at: place of each array, n_in + n_out of them. */
uint64_t mpidata_question_lay_out(const mpidata_array *in, int n_in, const mpidata_array *out, int n_out, uint64_t *at);

/* Write the description and the inputs. The arrays have been checked; at: as above. */
int mpidata_question_write(char *memory, const mpidata_array *in, int n_in, const mpidata_array *out, int n_out, const uint64_t *at);

/* Read one that another process has written, and may overwrite at any time: MPIDATA_ERR_WIRE if it is invalid, or does not fit
 * into `bytes`. */
int mpidata_question_read(char *memory, uint64_t bytes, mpidata_read_question *question);

#endif
