/* Names in the run folder, for libmpidata and mpidata-rank; mpidata/run/folder.py has them from here. */
#ifndef MPIDATA_RUN_FILES_H
#define MPIDATA_RUN_FILES_H

#define MPIDATA_RUN_PLAN "private/plan"
#define MPIDATA_RUN_CASE "private/case"
#define MPIDATA_ABORT_LINK "private/libmpidata_abort.so" /* if the path of the library has blanks */
#define MPIDATA_RUN_EXITS "exits"
#define MPIDATA_RUN_LATE "exits/late"
#define MPIDATA_RUN_ALIVE "private/alive"
#define MPIDATA_VANISHED "vanished-" /* in `exits`, with the name that an exit note would have */
#define MPIDATA_RUN_LOGS "logs"
#define MPIDATA_RUN_IDLE "logs/idle.log"
#define MPIDATA_RUN_HOSTS "hosts"
#define MPIDATA_RUN_JOURNAL "journal"
#define MPIDATA_RUN_OVER "over"
#define MPIDATA_RUN_SUMMARY "summary.json"
#define MPIDATA_RUN_WAITING "waiting"
#define MPIDATA_RUN_GIVEN_UP "given-up"

/* In the environment of all processes of a carried program, to find and end left-over ones: run folder and group. */
#define MPIDATA_CARRIED_MARK "MPIDATA_CARRIED_RUN"
#define MPIDATA_CARRIED_GROUP "MPIDATA_GROUP"

#endif
