/* How long a rank waits for others when a job ends or a rank has died, ms, with the reasons. Those of Python are in
 * mpidata/run/deadlines.py; AFTER_ERROR is in both. tests/unit/run/test_deadlines.py has their order. */
#ifndef MPIDATA_DEADLINES_H
#define MPIDATA_DEADLINES_H

enum {
    /* How long a rank that has reported an error stays: an earlier death would end the job before the scheduler reports why. */
    MPIDATA_AFTER_ERROR_MS = 4000,
    /* From the end of a training loop on another trainer to the end of the script of one that only gave its samples, which
     * learns of it shortly after. */
    MPIDATA_OVER_WITHOUT_MS = 5000,
    /* From one status of a trainer to the next; the last one follows its goodbye. */
    MPIDATA_STATUS_EVERY_MS = 200,
    /* mpidata-rank: between checks for the end of the job and for dead ranks. */
    MPIDATA_LOOK_EVERY_MS = 2000,
    /* mpidata-rank: from noticing the end of a failed or stopped job to ending its program. */
    MPIDATA_AFTER_OVER_MS = 7000,
    /* For MPI_Finalize if a rank has died and nobody needs this one any longer; without a death it may take any time. */
    MPIDATA_FINALIZE_MS = 5000,
    /* In MPI_Abort, for MPI's message to reach mpirun through a thread of PMIx, for which nothing can wait. */
    MPIDATA_PMIX_SENDS_MS = 300,
    /* For MPI_Abort to finish: its caller may hold a lock that it needs. */
    MPIDATA_ABORT_MS = 1000,
    /* mpidata-rank: from seeing that its program is stopped, or from the start of one that does not join, to its report. */
    MPIDATA_SAY_HELD_UP_MS = 60000,
    /* From the SIGKILL of a program to that of its mpidata-rank: the others must learn of a rank that does nothing more. */
    MPIDATA_BEFORE_DEATH_MS = 1000,
    /* From the launcher's SIGTERM to the end of a program that was killed before it: its death takes some time. */
    MPIDATA_DYING_MS = 500
};

#endif
