/* How a carrier ends the job. */
#include <stdio.h>
#include <time.h>

#include "base/deadlines.h"
#include "carrier.h"
#include "solver/solver.h"

int end_job(int status) {
    const struct timespec moment = {.tv_sec = MPIDATA_AFTER_ERROR_MS / 1000};
    char sentence[MPIDATA_TEXT_MAX];
    (void)snprintf(sentence, sizeof sentence, "%s", mpidata_last_error());
    (void)mpidata_report_error(sentence);
    (void)nanosleep(&moment, NULL); /* an earlier death would end the job before the scheduler has reported the cause */
    return mpidata_error(status, "%s", sentence);
}

int refuse(const carrier_t *carrier, int status, const char *what, const char *advice) {
    (void)mpidata_error(status, "%s. %s, simulation %lld. %s", what, carrier->ranks.who, (long long)carrier->simulation, advice);
    return end_job(status);
}
