/* Published arrays for the scheduler's sampler: it asks (published/asking.h) when its caller does. For the thread that calls
 * the scheduler. Not installed. */
#ifndef MPIDATA_READING_H
#define MPIDATA_READING_H

#include "published/asking.h"
#include "python/structures.h"

/* Called with each check for events; *did becomes 1 if an answer has come. */
int mpidata_reading_round(int *did);
void mpidata_reading_open(mpidata_job *job);
void mpidata_reading_close(void);

/* Ask for arrays newer than this version; an answer comes soon, even if there is nothing newer. */
int mpidata_scheduler_ask_published(int64_t version);

/* Take the answer: its part is the contents (contents/contents.h), of version `number`; kind MPIDATA_PUBLISHED_SAME:
 * nothing newer. MPIDATA_ERR_AGAIN: it has not come. Its memory is the caller's until mpidata_parcel_release. */
int mpidata_scheduler_published(mpidata_taken *answer);

#endif
