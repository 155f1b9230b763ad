/* Who reads asks the trainer that publishes for what is newer than it has, and takes the answer in: a parcel (parcel.h)
 * of one part. One question at a time, and never a wait: a caller that waits goes round. Of one thread. */
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
    int open;              /* an answer is to come ... */
    int trainer;           /* ... from this one; -1: nobody is asked */
    /* in the latter two contents are dropped */
    enum { MPIDATA_ASKING_GOES_ON = 0, MPIDATA_ASKING_IS_TO_END, MPIDATA_ASKING_ENDS } end;
} mpidata_asking;

void mpidata_asking_open(mpidata_asking *asking, mpidata_job *job);

/* What MPI still reads or writes stays until the end of the process. */
void mpidata_asking_close(mpidata_asking *asking);

/* Ask for what is newer than this version, once no other question is open. waits: there is no answer before there is
 * such. */
int mpidata_ask_for(mpidata_asking *asking, int64_t version, int waits);

/* Go on; between two calls the scheduler is to be listened to (mpidata_job_listen). *answer: what has come, checked,
 * and to be freed with mpidata_parcel_free, or NULL. Its head.number is the version: not newer, and no contents, where
 * head.kind is MPIDATA_PUBLISHED_SAME. Where the trainer has died and others go on, the next one is asked. */
int mpidata_asking_round(mpidata_asking *asking, mpidata_parcel **answer);

/* Ask no more, and take a question back that waits: go round until mpidata_asking_is_over, and nothing is under way to
 * this rank any more. */
void mpidata_asking_end(mpidata_asking *asking);
int mpidata_asking_is_over(const mpidata_asking *asking);

#endif
