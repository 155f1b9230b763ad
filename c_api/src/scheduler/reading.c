#include "scheduler/reading.h"

#include <stdlib.h>

#include "parcel/parcel_view.h"

static struct {
    mpidata_asking asking;
    mpidata_parcel *answer; /* not taken yet */
    int used;
} reading;

void mpidata_reading_open(mpidata_job *job) { mpidata_asking_open(&reading.asking, job); }

int mpidata_reading_round(int *did) {
    if (!reading.used || reading.answer) return MPIDATA_SUCCESS;
    MPIDATA_TRY(mpidata_asking_round(&reading.asking, &reading.answer));
    *did |= reading.answer != NULL;
    return MPIDATA_SUCCESS;
}

int mpidata_scheduler_ask_published(int64_t version) {
    if (!reading.asking.job)
        return mpidata_error(MPIDATA_ERR_ORDER, "This process has not joined a job as its scheduler.");
    reading.used = 1;
    mpidata_parcel_free(reading.answer);
    reading.answer = NULL;
    return reading.asking.open ? MPIDATA_SUCCESS : mpidata_ask_for(&reading.asking, version, 0);
}

int mpidata_scheduler_published(mpidata_taken *answer) {
    if (!reading.answer) return MPIDATA_ERR_AGAIN;
    *answer = mpidata_taken_of(reading.answer);
    reading.answer = NULL;
    return MPIDATA_SUCCESS;
}

void mpidata_reading_close(void) {
    mpidata_parcel_free(reading.answer);
    if (reading.used) mpidata_asking_close(&reading.asking);
    reading.answer = NULL;
    reading.used = 0;
}
