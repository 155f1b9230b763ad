/* The questions of a solver rank, or of those of a carrier's program, to inference ranks. Each goes to one of those that
 * live, in turn, and is asked again of another one if that is lost; what an inference rank that was given up may still
 * answer is dropped. Of one thread, that of the solver. */
#ifndef MPIDATA_QUESTIONS_H
#define MPIDATA_QUESTIONS_H

#include "job/job.h"

enum { MPIDATA_QUESTIONS_MAX = 8 }; /* of a rank, open at once */

typedef struct mpidata_questions mpidata_questions;

/* most: may be open at once. NULL: there is not enough memory. */
mpidata_questions *mpidata_questions_open(mpidata_job *job, int most);

/* Lets what is being sent leave, for two seconds at most: MPI may read it. */
void mpidata_questions_close(mpidata_questions *questions);

/* Ask. The arrays have been checked; their values, and *version, are lent until the question is closed. *question: its
 * number, from 1. MPIDATA_ERR_ARGUMENT: as many as may be are open. Does not block. */
int mpidata_questions_begin(mpidata_questions *questions, const mpidata_array *in, int n_in, const mpidata_array *out,
                            int n_out, int64_t *version, int64_t *question);

/* Is there an open question of this number? */
int mpidata_questions_knows(const mpidata_questions *questions, int64_t question);

/* One that is open; 0: none is. */
int64_t mpidata_questions_any(const mpidata_questions *questions);

/* Are as many open as may be? */
int mpidata_questions_full(const mpidata_questions *questions);

/* All have been waited for by another call than that of their own, or are dropped: that call finds no fault then. */
void mpidata_questions_settle(mpidata_questions *questions);

/* Was it open when mpidata_questions_settle was called? */
int mpidata_questions_settled(const mpidata_questions *questions, int64_t question);

/* Let MPI move data, take answers, and ask what can be asked, also again. *did becomes 1 if anything came. */
int mpidata_questions_round(mpidata_questions *questions, int *did);

/* Has it been answered, and does nothing of it move any more? Then it is closed. */
int mpidata_questions_ended(mpidata_questions *questions, int64_t question);

/* Close it without an answer, if none of its arrays is read any more; returns whether it is closed. */
int mpidata_questions_give_up(mpidata_questions *questions, int64_t question);

/* Might a question be answered now, as far as is known? */
int mpidata_questions_has_answerer(const mpidata_questions *questions);

#endif
