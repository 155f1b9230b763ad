/* The questions of a solver rank, or of the ranks of a carrier's program, to inference ranks. Each is sent to one of the living
 * ones, in turn, and to another one if that is lost; answers of an inference rank that was given up are dropped. For the
 * solver's thread. */
#ifndef MPIDATA_QUESTIONS_H
#define MPIDATA_QUESTIONS_H

#include "job/job.h"

enum { MPIDATA_QUESTIONS_MAX = 8 }; /* of a rank, open at once */

typedef struct mpidata_questions mpidata_questions;

/* most: limit of open questions. NULL: memory is exhausted. */
mpidata_questions *mpidata_questions_open(mpidata_job *job, int most);

/* Waits for at most two seconds until messages have left: MPI may read them. */
void mpidata_questions_close(mpidata_questions *questions);

/* Ask. The arrays have been checked; their values, and *version, are lent until the question is closed. *question: its
 * number, from 1. MPIDATA_ERR_ARGUMENT: the limit is reached. Does not block. */
int mpidata_questions_begin(mpidata_questions *questions, const mpidata_array *in, int n_in, const mpidata_array *out,
                            int n_out, int64_t *version, int64_t *question);

/* Whether there is an open question with this number. */
int mpidata_questions_knows(const mpidata_questions *questions, int64_t question);

/* An open one; 0: none is open. */
int64_t mpidata_questions_any(const mpidata_questions *questions);

/* Whether the limit of open questions is reached. */
int mpidata_questions_full(const mpidata_questions *questions);

/* All have been waited for by another call than their own, or are dropped: their own call is then not an error. */
void mpidata_questions_settle(mpidata_questions *questions);

/* Whether it was open when mpidata_questions_settle was called. */
int mpidata_questions_settled(const mpidata_questions *questions, int64_t question);

/* Let MPI progress, take answers, and send questions that can be sent, also again. *did becomes 1 if anything came. */
int mpidata_questions_round(mpidata_questions *questions, int *did);

/* Whether it was answered and nothing of it is in flight: it is then closed. */
int mpidata_questions_ended(mpidata_questions *questions, int64_t question);

/* Close it without an answer, unless its arrays are still being read; returns whether it is closed. */
int mpidata_questions_give_up(mpidata_questions *questions, int64_t question);

/* Whether a question might be answered now, as far as is known. */
int mpidata_questions_has_answerer(const mpidata_questions *questions);

#endif
