/* A reader asks the publishing trainer for arrays that are newer than its own, and receives the answer: a parcel (parcel.h)
 * with one part. One question at a time, without blocking: a caller that waits repeats rounds. For one thread. */
#ifndef MPIDATA_ASKING_H
#define MPIDATA_ASKING_H

#include "job/job.h"
#include "parcel/inbox.h"
#include "contents/contents.h"

typedef struct {
    mpidata_job *job;
    mpidata_inbox *inbox; /* NULL: nothing has been asked yet */
    mpidata_transfers transfers;
    mpidata_ask question;
    mpidata_pending asked; /* its message */
    int open;              /* an answer is pending ... */
    int trainer;           /* ... from this one; -1: nobody is asked */
    /* in the last two, contents are dropped */
    enum { MPIDATA_ASKING_GOES_ON = 0, MPIDATA_ASKING_IS_TO_END, MPIDATA_ASKING_ENDS } end;
} mpidata_asking;

void mpidata_asking_open(mpidata_asking *asking, mpidata_job *job);

/* Memory that MPI still reads or writes stays until the process ends. */
void mpidata_asking_close(mpidata_asking *asking);

/* Ask for arrays newer than this version, once no other question is open. waits: the answer comes only when there are
 * some. */
int mpidata_ask_for(mpidata_asking *asking, int64_t version, int waits);

/* Make a round; between two calls the caller must listen to the scheduler (mpidata_job_listen). *answer: a checked answer, to
 * be freed with mpidata_parcel_free, or NULL. Its head.number is the version; if head.kind is MPIDATA_PUBLISHED_SAME, it is
 * not newer and has no contents. If the trainer has died and others continue, the next one is asked. */
int mpidata_asking_round(mpidata_asking *asking, mpidata_parcel **answer);

/* Stop asking, and withdraw a waiting question: repeat rounds until mpidata_asking_is_over; then nothing is in flight to
 * this rank. */
void mpidata_asking_end(mpidata_asking *asking);
int mpidata_asking_is_over(const mpidata_asking *asking);

#endif
