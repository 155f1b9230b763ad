/* mpidata-rank: declarations that its parts share. */
#ifndef MPIDATA_RANK_H
#define MPIDATA_RANK_H

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/pulse.h"
#include "job/run_files.h"
#include "plan_text/plan_text.h"

#ifndef MPIDATA_BUILT_WITH
#define MPIDATA_BUILT_WITH "" /* a build without CMake */
#endif
#define SECOND UINT64_C(1000000000) /* in ns */

/* This rank. me.c */
typedef struct {
    const char *run_folder;
    long rank; /* of the launcher's job: of the world, or of the group or loader if that was spawned; -1: not known yet */
    int spawned, role, speaks; /* speaks: later errors are not the same on all ranks */
    int carries; /* its program starts one that is not a rank, with processes anywhere */
    long index, rank_in_group; /* trainer, group, loader, inference rank or learner; rank within the group */
} rank_t;
extern rank_t me;

/* How its program ended. */
typedef struct {
    int status; /* as waitpid returns it */
    pid_t pid;
    int joined, told; /* told: the rank had been asked to end, or its group was lost */
    long long batches; /* that a trainer had drawn */
    int aborted, abort_code; /* aborted: it called MPI_Abort, which was kept from ending the job */
    double silent_s;  /* its silence, if it was ended because of that; else 0 */
    const char *silent_key; /* the key of the job file that limits it */
    int stopped;      /* whether a signal, such as SIGSTOP, had stopped the program then */
    const char *item;  /* what a loader was reading, or NULL */
    int late;          /* it was ended because it had not joined the job */
    double final_s;   /* how long MPI_Finalize had hung, if it was ended because of that after leaving the job; else 0 */
    const char *error; /* a sentence, or NULL */
    const char *raised; /* the Python exception that ended it: "raised ..."; or NULL */
} end_t;

/* say.c. Errors that all ranks find are reported only by rank 0. */
extern void (*before_refusal)(const char *text); /* called by refuse, set by main: say.c depends on no other part */
__attribute__((format(printf, 1, 2))) _Noreturn void refuse(const char *format, ...);
__attribute__((format(printf, 1, 2))) char *print(const char *format, ...);
void say_aside(const char *sentence); /* to the user, as mpidata/run/side_channel.py does */
long number(const char *text); /* from 0 to 10^9, or -1 */

/* plan_owner.c */
FILE *open_plan(const char *path);

/* plan.c */
mpidata_plan read_plan(void); /* of the job, from RUN_FOLDER/private/plan */
/* The arguments with {name} replaced by the value of the assignment name=value. */
void fill_in(char **arguments, char **assignments);
/* The folder of its simulation in which a spawned solver runs, made by the scheduler; NULL: there is none. */
const char *case_folder(const mpidata_plan *plan, char **assignments);
/* Remove it, or keep it if requested. Blocks. */
void end_case(char **assignments, int failed);
/* The same for all folders that a carrier has left. Blocks. */
void end_cases(void);

/* rank_name.c */
long read_launcher(void); /* sets me.rank; returns the launcher's number of ranks, -1: unknown */
void find_role(const mpidata_plan *plan, long size);
int may_be_lost(const mpidata_plan *plan); /* its death need not end the job */
int is_replaced(void);      /* a solver, loader, inference rank or learner: its death need not end the job */
char *rank_name(void);      /* in a sentence */
char *foreign_launcher(int status); /* sentence if MPI may have ended the program because of its launcher, else NULL */
char *file_name(int is_log); /* of its log, or of its exit note, within their folders */

/* pulse.c */
mpidata_pulse *open_pulse(char **name); /* *name: for MPIDATA_PULSE */
unsigned flags_of(const mpidata_pulse *pulse);
uint64_t now_ns(void);

/* arrival.c. The sentence on a program that has not joined; its stack goes to its log. May take some seconds. */
char *late(const mpidata_plan *plan, pid_t child);
char *what_it_does(pid_t child); /* for example "it sleeps (state S)" */

/* preload.c. MPI_Abort of a solver must end its process, not the job: preload a library for this. Returns why it cannot be
 * preloaded, or NULL. */
char *preload(void);

/* exit_note.c */
const char *write_exit_note(const end_t *end); /* why it could not be written, or NULL */
void leave_word(const char *refusal);       /* a note of a spawned rank that cannot start; refusal: why */
/* The last message of mpidata in the program's log after `begun`; NULL: none. */
char *own_word(const char *log, long begun);
char *unfinished(int joined); /* sentence on a program that ended with status 0 but did not leave the job */

/* alive.c. The folder `private/alive` has a file of each rank, locked while its mpidata-rank lives, which removes it at its
 * end. */
void show_alive(void);
void end_alive(void);
int note_vanished(void); /* leave a note of each rank that was killed without one; returns their number. Opens all files */

/* mates.c. State of the other ranks of the group; 0 at first. */
typedef struct {
    uint64_t looked, waited; /* when they were last checked; when one was last seen to wait for the trainers */
    uint64_t touched;        /* time of the file then; 0: not yet */
} mates_t;
/* Check whether one waits for the trainers, if this rank has been silent for more than half of the allowed time. */
void look_for_mates(mates_t *mates, double silent_s, double allowed_s, uint64_t now);

/* held_up.c. State of a program for which others wait; 0 at first. */
typedef struct {
    double stopped_at; /* since when it has been stopped, in s that mpidata-rank was awake; 0: it is not */
    int said;
} held_up_t;
/* Report once to the user that a program has been stopped, or has not joined, for `after_s`. */
void say_if_held_up(held_up_t *held_up, pid_t child, unsigned flags, double awake_s, double after_s);

/* watch.c: wait until the program ends, or end it. */
end_t watch(const mpidata_plan *plan, const mpidata_pulse *pulse, pid_t child);
int end_carried(void); /* end all that this carrier has started; returns the number of processes, including zombies */
_Noreturn void die(pid_t child); /* with everything the program started */

#endif
