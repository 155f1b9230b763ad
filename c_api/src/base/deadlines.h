/* How long a rank waits for others where a job ends or a rank has died, ms, with why. Those of the Python side are in
 * mpidata/run/deadlines.py; AFTER_ERROR is Python's, too. tests/unit/run/test_deadlines.py has their order. */
#ifndef MPIDATA_DEADLINES_H
#define MPIDATA_DEADLINES_H

enum {
    /* A rank that has reported an error stays so long: dying first would end the job before the scheduler has told why. */
    MPIDATA_AFTER_ERROR_MS = 4000,
    /* From the end of a training loop on another trainer to that of the script of one that only gave its samples: it is known
     * there after a moment. */
    MPIDATA_OVER_WITHOUT_MS = 5000,
    /* From one status of a trainer to the next, the last of them after its goodbye. */
    MPIDATA_STATUS_EVERY_MS = 200,
    /* mpidata-rank: from one look for the end of the job, and for ranks that have died, to the next. */
    MPIDATA_LOOK_EVERY_MS = 2000,
    /* From its noticing the end of a job that has failed or was stopped to the end of its program. */
    MPIDATA_AFTER_OVER_MS = 7000,
    /* For MPI_Finalize where a rank has died and nobody needs this one any more; without a death it may take any time. */
    MPIDATA_FINALIZE_MS = 5000,
    /* In MPI_Abort, for what MPI says of it to reach mpirun by a thread of PMIx, which nothing can wait for. */
    MPIDATA_PMIX_SENDS_MS = 300,
    /* For MPI_Abort to come to its end: what called it may hold a lock that it needs. */
    MPIDATA_ABORT_MS = 1000,
    /* From its seeing that its program is stopped, or the program's start where it does not come to join, to its saying so. */
    MPIDATA_SAY_HELD_UP_MS = 60000,
    /* From the SIGKILL of a program to that of its mpidata-rank: the others are to hear of one that does nothing any more. */
    MPIDATA_BEFORE_DEATH_MS = 1000,
    /* From the launcher's SIGTERM to the end of a program that had been killed before: its death takes a moment. */
    MPIDATA_DYING_MS = 500
};

#endif
