"""How long one part of a job waits for another where it ends or a rank has died, in seconds, with why.

They depend on one another: what is asked to end must have had its time before who asked ends it. Those of the C side
are in c_api/src/base/deadlines.h, also the one that both have. tests/unit/run/test_deadlines.py has their order.
"""

from __future__ import annotations

# A trainer.
FAILED_RECORDER_S = 1.0  # for what it has recorded, once its script has failed; the job ends meanwhile

# The scheduler.
STOP_S = 7.0  # from a stop to the end of what has not left
FAIL_S = 2.5  # from an error to that
MORE_ERRORS_S = 0.2  # from an error that ends the job at once: others may report theirs
LAST_FIGURES_S = 0.5  # for the status of a trainer that comes after its goodbye
LOGGERS_S = 5.0  # for the loggers to end after the ranks have left in order, and ...
LOGGERS_AT_ONCE_S = 1.0  # ... where these are ended
LEAVE_SHARE = 0.3  # of checkpoint.within_s: for the ranks to leave when the checkpoint is, or would have been, written

# A death, as the scheduler learns of it from MPI and from `exits/`, in any order.
WHY_LOST_S = 3.0  # from MPI's word that a group is lost to the file that says why
WHY_LOST_IN_START_S = 2.0  # the same while the ranks join
WHY_TRAINER_DIED_S = 2.0  # the same where it is a trainer, which ends the job
WHY_TRAINER_FAILED_S = 1.0  # from the report of a trainer's script to the word that another trainer died, which is why
LEFT_EARLY_S = 10.0  # for which trainers wait for one that left in the middle of an epoch, until the job is stopped
SILENT_S = 60.0  # without a sign of life of a trainer, or a new batch of one that could have it, until it is named
MPI_TELLS_S = 3.0  # from the file to MPI's word; past it the scheduler does without

# Groups that are spawned.
SPAWN_S = 120.0  # MPI_Comm_spawn of a program that never joins does not return
SPAWN_HOPELESS_S = 100.0  # from a first spawn that failed to one that is the last, if none has joined in between
TRAINERS_ANSWER_S = (
    1.0  # for trainers that may die to say that they would join, which keeps the scripts of others waiting
)
JOIN_GROUP_S = 15.0  # for the trainers to join a group that has answered; if it has died just then, they may hang
SAY_JOIN_S = 60.0  # from asking who is to join, or be joined, to naming who does not answer

# `mpidata run`.
GRACE_S = 10.0  # from the end of a rank on which all depends, or of a stop, to the end of all ranks
FAILED_S = 2.0  # from the summary of a job that has failed: the scheduler has waited for who may still leave in order
LATE_S = 3.0  # for the scheduler to write the summary of a job that took all of checkpoint.within_s
EMPTY_S = 5.0  # for the launcher to end when all ranks have
TERM_S = 2.5  # for the launcher to end its ranks in order after SIGTERM
ORPHANS_S = 1.5  # for what the launcher has left
REAP_S = 0.5  # for those to be gone from the table of processes
