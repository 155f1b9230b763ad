/* A question in memory that two processes share: its description, then the values of each array on a boundary of 64 bytes, those
 * that are sent first. Needs no MPI. */
#ifndef MPIDATA_QUESTION_IN_MEMORY_H
#define MPIDATA_QUESTION_IN_MEMORY_H

#include "question/description.h"

/* A question that was read from there: a copy of its description, and the arrays, whose values lie where they were found. */
typedef struct {
    mpidata_description head;
    mpidata_described described[2 * MPIDATA_ARRAYS_MAX];
    mpidata_array arrays[2 * MPIDATA_ARRAYS_MAX]; /* head.n_in, then head.n_out */
} mpidata_read_question;

/* Bytes that it takes. at: place of each array, n_in + n_out of them; UINT64_MAX: there is no such memory. */
uint64_t mpidata_question_lay_out(const mpidata_array *in, int n_in, const mpidata_array *out, int n_out, uint64_t *at);

/* Write the description and the values that are sent. The arrays have been checked; at: as above. */
int mpidata_question_write(char *memory, const mpidata_array *in, int n_in, const mpidata_array *out, int n_out, const uint64_t *at);

/* Read one that another process has written, and may write again at any time: MPIDATA_ERR_WIRE where it is none, or does not fit
 * into so many bytes. */
int mpidata_question_read(char *memory, uint64_t bytes, mpidata_read_question *question);

#endif
