/* The questions of this solver rank, by MPI. */
#ifndef MPIDATA_INFER_H
#define MPIDATA_INFER_H

#include "solver/sender.h"

/* As mpidata_questions_begin, with the first question's memory. */
int mpidata_infer_ask(mpidata_sender *sender, const mpidata_array *in, int n_in, const mpidata_array *out, int n_out,
                      int64_t *version, int64_t *question);

/* Sleep until the question is answered; samples progress meanwhile. MPIDATA_ERR_ARGUMENT: it is not open; MPIDATA_END: the
 * job is stopping, and nobody answers. */
int mpidata_infer_answer(mpidata_sender *sender, int64_t question);

/* Wait for all open questions, so that their arrays are no longer lent. */
int mpidata_infer_settle(mpidata_sender *sender);

/* Drop all questions. */
void mpidata_infer_close(void);

#endif
