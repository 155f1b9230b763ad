"""Deadlines in seconds by which parts of a job wait for one another when it ends or a rank has died, with reasons.

They depend on one another: a process that is asked to end must have its full time before the one that asked ends it.
Those in C, and the one of both, are in c_api/src/base/deadlines.h. tests/unit/run/test_deadlines.py checks the order.
"""

from __future__ import annotations

# A trainer.
FAILED_RECORDER_S = 1.0  # to write what it has recorded, after its script has failed; the job ends meanwhile

# The scheduler.
STOP_S = 7.0  # from a stop to the end of ranks that have not left
FAIL_S = 2.5  # from an error to the same
MORE_ERRORS_S = 0.2  # from an error that ends the job at once: others may report theirs
LAST_FIGURES_S = 0.5  # for the status of a trainer that arrives after its goodbye
LOGGERS_S = 5.0  # for the loggers to end after the ranks have left in order, and ...
LOGGERS_AT_ONCE_S = 1.0  # ... if these are ended
LEAVE_SHARE = 0.3  # of checkpoint.within_s: for the ranks to leave when the checkpoint is, or would have been, written

# A death, which MPI and the files in `exits/` report to the scheduler in any order.
WHY_LOST_S = 3.0  # from MPI's report that a group is lost to the file with the cause
WHY_LOST_IN_START_S = 2.0  # the same while the ranks join
WHY_TRAINER_DIED_S = 2.0  # the same for a trainer whose death ends the job
WHY_TRAINER_FAILED_S = 1.0  # from the report of a trainer's script to that of another trainer's death, its cause
LEFT_EARLY_S = 10.0  # for which trainers wait for one that left in the middle of an epoch before the job is stopped
SILENT_S = 60.0  # without a sign of life of a trainer, or a new batch although one is ready, before it is reported
MPI_TELLS_S = 3.0  # from the file to MPI's report; after that the scheduler does not wait for it

# Groups that are spawned.
SPAWN_S = 120.0  # MPI_Comm_spawn of a program that never joins does not return
SPAWN_HOPELESS_S = 100.0  # from the first failed spawn to the last attempt, if none has joined in between
TRAINERS_ANSWER_S = 1.0  # for trainers that may die to answer that they can join, while the scripts of others wait
JOIN_GROUP_S = 15.0  # for the trainers to join a group that has answered; if it dies just then, they may hang
SAY_JOIN_S = 60.0  # from asking the ranks to join to printing which do not answer

# `mpidata run`.
GRACE_S = 10.0  # from a stop, or the end of a rank without which the job cannot continue, to the end of all ranks
FAILED_S = 2.0  # from the summary of a failed job: the scheduler has already waited for ranks to leave in order
LATE_S = 3.0  # for the scheduler to write the summary of a job that took all of checkpoint.within_s
EMPTY_S = 5.0  # for the launcher to end after all ranks have
TERM_S = 2.5  # for the launcher to end its ranks in order after SIGTERM
ORPHANS_S = 1.5  # for processes that the launcher has left
REAP_S = 0.5  # for these to disappear from the process table
