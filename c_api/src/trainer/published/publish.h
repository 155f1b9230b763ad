/* Publishing; called by Python (mpidata/trainer/publishing.py). Not installed. */
#ifndef MPIDATA_TRAINER_PUBLISH_H
#define MPIDATA_TRAINER_PUBLISH_H

#include "mpidata.h"

/* Publish n arrays: their names, dtypes (mpidata_dtype), numbers of dimensions, shapes (MPIDATA_PLAN_NDIM numbers for
 * each) and values, contiguous, in C order. copies: this trainer is the one that publishes, and copies them; else it only
 * counts the version. *version: from 1. The first call fixes all except the values. MPIDATA_ERR_ARGUMENT, _MEMORY. Any
 * thread, one at a time; does not wait. */
int mpidata_trainer_publish(int64_t n, const char *const *names, const int32_t *dtypes, const int32_t *ndims,
                            const int64_t *shapes, const void *const *values, int copies, int64_t *version);

/* For a checkpoint, or a trainer that takes a place: the newest contents (contents/contents.h), if this trainer has them,
 * else their description; *bytes 0: nothing has been published. They stay until mpidata_trainer_published_release of
 * *edition. */
int mpidata_trainer_published(const void **contents, int64_t *bytes, int64_t *edition);
int mpidata_trainer_published_release(int64_t edition);

/* Continue from there. */
int mpidata_trainer_restore_published(const void *contents, int64_t bytes);

#endif
