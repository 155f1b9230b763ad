/* The scheduler's side of the learner: requests to it, and its answers, both parcels (parcel/parcel.h). One learner at a
 * time. For the thread that calls the scheduler. Not installed. */
#ifndef MPIDATA_TEACHING_H
#define MPIDATA_TEACHING_H

#include "job/link.h"
#include "python/structures.h"

/* Called with each check for events; *did becomes 1 if an answer has come. */
int mpidata_teaching_round(int *did);

/* Ask this learner, which has this rank in the link, from now on. */
int mpidata_teaching_begin(const mpidata_link *link, int learner, int rank);

/* It has died or left; no effect unless it is the one that is asked. */
void mpidata_teaching_end(int learner);
void mpidata_teaching_close(void);

/* Ask the learner; the parts must not change before it has answered. Dropped if there is none, or it has died. */
int mpidata_scheduler_teach(uint64_t number, int64_t n_parts, const void *const *parts, const int64_t *sizes);

/* Take its next answer; MPIDATA_ERR_AGAIN: there is none. Its memory is the caller's until mpidata_parcel_release. */
int mpidata_scheduler_learnt(mpidata_taken *answer);

#endif
