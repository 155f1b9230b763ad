/* Wait until the program ends, or end it if it hangs, if the job is over, or if the rank is asked to end. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/deadlines.h"
#include "family.h"
#include "rank.h"

#ifndef MPIDATA_PATIENCE /* of one second; tests have less */
#define MPIDATA_PATIENCE SECOND
#endif
static const uint64_t LOOK_EVERY = MPIDATA_LOOK_EVERY_MS * (MPIDATA_PATIENCE / 1000);
static const uint64_t AFTER_OVER = MPIDATA_AFTER_OVER_MS * (MPIDATA_PATIENCE / 1000);
static const uint64_t FINALIZE = MPIDATA_FINALIZE_MS * (MPIDATA_PATIENCE / 1000);
static const uint64_t HELD_UP = (uint64_t)MPIDATA_SAY_HELD_UP_MS * (MPIDATA_PATIENCE / 1000);
static const uint64_t BEFORE_DEATH = MPIDATA_BEFORE_DEATH_MS * (SECOND / 1000);
static const uint64_t ABORT = MPIDATA_ABORT_MS * (SECOND / 1000);

typedef struct {
    const mpidata_plan *plan;
    const mpidata_pulse *pulse;
    pid_t child;
    char *over, *summary;         /* files that exist once the job has ended */
    char *given_up;               /* file that exists once the job no longer waits for this group */
    char *exits;                  /* the folder of this start of the run; the next start has a new one of that name */
    ino_t exits_number;
    char *late;                   /* in that folder; made by the first rank that ends because it is late */
    uint64_t awake, looked;       /* awake: how long this process was; looked: when `over` was last checked */
    uint64_t over_at, final_at;   /* when that was noticed, 0 before */
    uint64_t aborted_at;          /* when a call of MPI_Abort by the program was noticed, 0 before */
    uint64_t told_at;             /* when a signal asked the rank to end on behalf of the job, 0 before */
    uint64_t counted;             /* when dead ranks were last looked for */
    int dead;                     /* whether a rank of this start of the run has died */
    long looks;                   /* how often dead ranks were looked for */
    uint64_t watched_at;          /* when the program was last looked at */
    uint64_t silent;              /* how long it had been silent then */
    uint64_t looked_at_child;     /* when it was last checked whether the program is stopped */
    mates_t mates;
    held_up_t held_up;
} watch_t;

int end_carried(void)
{
    char *run = print(MPIDATA_CARRIED_MARK "=%s", me.run_folder), *group = print(MPIDATA_CARRIED_GROUP "=%ld", me.index);
    const int found = kill_family() + kill_marked(run, group);
    free(run);
    free(group);
    return found;
}

_Noreturn void die(pid_t child)
{
    const char *pulse = getenv(MPIDATA_PULSE_VARIABLE);
    /* Not the process group: Slurm puts all ranks of a host into that of the first one. */
    (void)kill_family();
    if (child > 0) kill(child, SIGKILL);
    if (me.carries) end_carried();
    if (pulse) (void)kill_marked(print("MPIDATA_RUN=%s", me.run_folder), print(MPIDATA_PULSE_VARIABLE "=%s", pulse));
    for (;;) kill(getpid(), SIGKILL);
}

/* How long a solver, loader, inference rank or server has been silent; 0 if its silence does not count.
 *
 * A pause of all ranks, for example of a suspended job or a busy host, must not look like silence: only time in which
 * this process was awake counts. It looks twice a second, so of a longer time since the last look, little counts. */
static uint64_t silence(watch_t *watch, unsigned flags, uint64_t now)
{
    static const uint64_t COUNTS = 600000000;
    const uint64_t beat = atomic_load(&watch->pulse->beat_ns), slept = now - watch->watched_at, before = watch->silent;
    watch->watched_at = now;
    watch->silent = 0;
    if (!is_replaced() && me.role != MPIDATA_ROLE_SERVER) return 0;
    if (!(flags & MPIDATA_PULSE_JOINED) || flags & MPIDATA_PULSE_LEFT || !beat) return 0;
    const uint64_t since = beat > watch->mates.waited ? beat : watch->mates.waited;
    const uint64_t silent = now > since ? now - since : 0, most = before + (slept < COUNTS ? slept : COUNTS);
    watch->silent = silent < most ? silent : most;
    return watch->silent;
}

/* How long the program has been silent, s, if that is longer than allowed; else 0. end->silent_key: the key that limits it. A
 * program that a signal has stopped does not get the longer limit of a start. */
static double too_long(watch_t *watch, unsigned flags, uint64_t now, end_t *end)
{
    const mpidata_plan *plan = watch->plan;
    const struct { double s; const char *key; } all[] = {
        {plan->timeout_s, "solvers.timeout_s"}, {plan->start_timeout_s, "solvers.start_timeout_s"},
        {plan->loader_timeout_s, "loaders.timeout_s"}, {plan->loader_start_timeout_s, "loaders.start_timeout_s"},
        {plan->inference_timeout_s, "inference.timeout_s"}, {plan->inference_start_timeout_s, "inference.start_timeout_s"},
        {plan->trainers_timeout_s, "trainers.timeout_s"}, {0, ""} }; /* a learner may compute for long */
    const int first = me.role == MPIDATA_ROLE_LOADER ? 2 : me.role == MPIDATA_ROLE_INFERENCE ? 4 : 0;
    double silent_s = (double)silence(watch, flags, now) / 1e9;
    end->stopped = silent_s > all[first].s && is_stopped(watch->child);
    const int starting = (flags & MPIDATA_PULSE_STARTING) && !end->stopped;
    const int which = me.role == MPIDATA_ROLE_SERVER ? 6 : me.role == MPIDATA_ROLE_LEARNER ? 7 : first + starting;
    double allowed_s = all[which].s;
    end->silent_key = all[which].key;
    if (me.role == MPIDATA_ROLE_SOLVER && plan->ranks_per_group > 1) {
        look_for_mates(&watch->mates, silent_s, allowed_s, now);
        silent_s = (double)silence(watch, flags, now) / 1e9;
        allowed_s *= 1.25; /* a mate reports its wait late, and that is seen late */
    }
    return allowed_s > 0 && silent_s > allowed_s ? silent_s : 0;
}

/* Whether a rank has died: each dead rank has an exit note, which ranks that miss it write for it if necessary. Only a few
 * ranks search for missing ones, the others only if the first ones do not: else thousands would open all files. */
static int somebody_died(watch_t *watch, uint64_t now)
{
    enum { AT_ONCE = 8 };
    if (watch->dead || now - watch->counted < LOOK_EVERY) return watch->dead;
    watch->counted = now;
    DIR *folder = opendir(watch->exits);
    for (struct dirent *entry; folder && !watch->dead && (entry = readdir(folder));) watch->dead = *entry->d_name != '.';
    if (folder) closedir(folder);
    if (!watch->dead && watch->looks++ >= me.rank / AT_ONCE) watch->dead = note_vanished() > 0;
    return watch->dead;
}

/* Whether MPI_Finalize has had its time. It rightly waits while the others still work; only after a death may it wait forever.
 * It is then overdue if it can be left without harm to them: when the job has ended, or for a group with its own world or one
 * that is lost. */
static int finalize_is_overdue(watch_t *watch, unsigned flags, uint64_t now)
{
    if (!(flags & MPIDATA_PULSE_FINALIZING) || !watch->plan->fault_tolerant) return 0;
    if (!(flags & MPIDATA_PULSE_LOST)) {
        if (!me.spawned && !watch->over_at && access(watch->summary, F_OK)) return 0;
        if (!somebody_died(watch, now)) return 0;
    }
    if (!watch->final_at) watch->final_at = now;
    return now - watch->final_at > FINALIZE;
}

/* Whether MPI_Abort does not finish, for example because its caller holds a lock that it needs. */
static int abort_is_overdue(watch_t *watch, unsigned flags, uint64_t now)
{
    if (!(flags & MPIDATA_PULSE_ABORTED)) return 0;
    if (!watch->aborted_at) watch->aborted_at = now;
    return now - watch->aborted_at > ABORT;
}

/* Whether the program is late and this rank must report it: one rank is enough, if the file for this can be made. */
static int is_late(watch_t *watch, unsigned flags)
{
    if (me.spawned || me.role == MPIDATA_ROLE_SCHEDULER || flags & (MPIDATA_PULSE_ARRIVED | MPIDATA_PULSE_JOINED)) return 0;
    if (watch->plan->join_timeout_s <= 0 || (double)watch->awake <= watch->plan->join_timeout_s * 1e9) return 0;
    const int file = open(watch->late, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0) close(file);
    return file >= 0 || errno != EEXIST;
}

/* Whether nobody waits for this rank any longer: one in a long step, or a spawned one that has not joined, can learn this only
 * from files. */
static int nobody_waits(const watch_t *watch, unsigned flags)
{
    if (may_be_lost(watch->plan) && access(watch->given_up, F_OK) == 0) return 1;
    return me.spawned && !(flags & MPIDATA_PULSE_JOINED) && access(watch->summary, F_OK) == 0;
}

/* Whether the run was restarted without this rank, because its host was unreachable. */
static int is_superseded(const watch_t *watch)
{
    struct stat now;
    return stat(watch->exits, &now) == 0 && watch->exits_number && now.st_ino != watch->exits_number;
}

static int job_is_over(watch_t *watch, unsigned flags, uint64_t now)
{
    if (!watch->over_at && now - watch->looked >= LOOK_EVERY) {
        watch->looked = now;
        if (access(watch->over, F_OK) == 0) watch->over_at = now;
        if (is_superseded(watch)) die(watch->child); /* without an exit note: the folder belongs to others */
        if (nobody_waits(watch, flags)) return 1;
    }
    return watch->over_at && now - watch->over_at > AFTER_OVER;
}

/* End the program and wait briefly for its end, so that the peers learn of a rank that no longer does anything. */
static int end_program(pid_t child)
{
    int status = SIGKILL; /* as waitpid would return it */
    kill(child, SIGKILL);
    for (const uint64_t until = now_ns() + BEFORE_DEATH; now_ns() < until && waitpid(child, &status, WNOHANG) == 0;)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    return status;
}

/* Leave the scheduler the request in a file: its program, which may not handle signals yet, might miss it. */
static void ask_to_stop(void)
{
    char *path = print("%s/stop", me.run_folder);
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file < 0) return;
    if (write(file, "SIGUSR1\n", 8) < 0) (void)unlink(path);
    close(file);
}

/* Whether a signal asks the rank to end on behalf of the job. Before all have joined, only the launcher's does: a death that
 * another process causes then must be noticed, because the others would wait for the rank. */
static int tells(const watch_t *watch, const siginfo_t *signal_taken)
{
    if (signal_taken->si_signo != SIGTERM && signal_taken->si_signo != SIGINT) return 0;
    return flags_of(watch->pulse) & MPIDATA_PULSE_JOINED || signal_taken->si_pid == getppid();
}

static void pass_on(watch_t *watch, const siginfo_t *signal_taken, end_t *end)
{
    const int signal_number = signal_taken->si_signo;
    if (signal_number == SIGTERM || signal_number == SIGINT) { /* comes before a pending SIGCHLD */
        end->told |= tells(watch, signal_taken);
        if (end->told && !watch->told_at) watch->told_at = now_ns();
        kill(watch->child, signal_number);
    } else if (signal_number == SIGUSR1 && me.role == MPIDATA_ROLE_SCHEDULER) {
        ask_to_stop();
        if (flags_of(watch->pulse) & MPIDATA_PULSE_JOINED) kill(watch->child, signal_number);
    }
}

static void look_at_child(watch_t *watch, unsigned flags, uint64_t now)
{
    if (now - watch->looked_at_child < LOOK_EVERY) return;
    watch->looked_at_child = now;
    say_if_held_up(&watch->held_up, watch->child, flags, (double)watch->awake / 1e9, (double)HELD_UP / 1e9);
}

/* Whether the program was ended. */
static int end_if_due(watch_t *watch, end_t *end)
{
    const uint64_t now = now_ns(), slept = now - watch->watched_at;
    const unsigned flags = flags_of(watch->pulse);
    const double silent_s = too_long(watch, flags, now, end);
    const int over = job_is_over(watch, flags, now), final = finalize_is_overdue(watch, flags, now);
    const int stuck = abort_is_overdue(watch, flags, now);
    watch->awake += slept < 3 * SECOND ? slept : 0;
    look_at_child(watch, flags, now);
    end->late = !over && is_late(watch, flags);
    if (end->late) end->error = late(watch->plan, watch->child);
    if (!over && !final && silent_s == 0 && !stuck && !end->late) return 0;
    end->status = end_program(watch->child);
    if (over) end->told = 1;
    else if (final && flags & MPIDATA_PULSE_LEFT) { /* it had done its work */
        end->status = 0;
        end->final_s = (double)(now - watch->final_at) / 1e9;
    } else if (!stuck) end->silent_s = silent_s;
    return 1;
}

/* Whether the program ended as if asked to end. */
static int ended_as_asked(int status)
{
    const int of = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status) - 128;
    return of == SIGTERM || of == SIGINT;
}

/* Launchers and batch systems signal all processes, in any order: if the program has ended in this way, this process's own
 * signal may follow shortly. */
static void wait_for_own(const watch_t *watch, end_t *end)
{
    siginfo_t taken;
    if (!ended_as_asked(end->status)) return;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    if (sigtimedwait(&signals, &taken, &(struct timespec){.tv_nsec = 500000000}) > 0) end->told = tells(watch, &taken);
}

/* Whether the program was killed before the rank was asked to end, although this process has learned of it later. The
 * connections of a dying program are closed before it can be waited for: launchers may learn of its death from the others,
 * and end all. No launcher sends SIGKILL so soon after SIGTERM, and it would also kill this process. */
static int was_killed_before(const watch_t *watch, int status)
{
    if (!watch->told_at || !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) return 0;
    return now_ns() - watch->told_at < MPIDATA_DYING_MS * (SECOND / 1000);
}

end_t watch(const mpidata_plan *plan, const mpidata_pulse *pulse, pid_t child)
{
    end_t end = {.pid = child};
    watch_t watch = {.plan = plan, .pulse = pulse, .child = child, .watched_at = now_ns()};
    watch.over = print("%s/" MPIDATA_RUN_OVER, me.run_folder);
    watch.summary = print("%s/" MPIDATA_RUN_SUMMARY, me.run_folder);
    watch.exits = print("%s/" MPIDATA_RUN_EXITS, me.run_folder);
    watch.late = print("%s/" MPIDATA_RUN_LATE, me.run_folder);
    struct stat exits;
    watch.exits_number = stat(watch.exits, &exits) ? 0 : exits.st_ino;
    watch.given_up = print("%s/" MPIDATA_RUN_GIVEN_UP "/%s-%ld", me.run_folder,
                           me.role == MPIDATA_ROLE_SOLVER ? "group" : mpidata_role_name(me.role), me.index);
    sigset_t signals;
    sigemptyset(&signals);
    const int taken[] = {SIGTERM, SIGINT, SIGUSR1, SIGCHLD, SIGRTMIN};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) sigaddset(&signals, taken[i]);
    for (;;) {
        siginfo_t taken = {0};
        const int signal_number = sigtimedwait(&signals, &taken, &(struct timespec){.tv_nsec = 500000000});
        if (signal_number == SIGRTMIN) die(child); /* the launcher is gone */
        /* A launcher that ends all because this program has died may signal before the SIGCHLD. */
        const int ended = waitpid(child, &end.status, WNOHANG) == child;
        if (ended) end.told |= signal_number > 0 && tells(&watch, &taken) && ended_as_asked(end.status);
        else if (signal_number > 0) pass_on(&watch, &taken, &end);
        if (ended && was_killed_before(&watch, end.status)) end.told = 0;
        if (ended || end_if_due(&watch, &end)) break;
        if (flags_of(pulse) & MPIDATA_PULSE_FINALIZING) continue_if_stopped(child); /* others wait for it in MPI_Finalize */
    }
    if (!end.told) wait_for_own(&watch, &end);
    const unsigned flags = flags_of(pulse);
    end.joined = (flags & MPIDATA_PULSE_JOINED) != 0;
    end.aborted = (flags & MPIDATA_PULSE_ABORTED) != 0;
    end.abort_code = atomic_load(&pulse->abort_code);
    end.batches = me.role == MPIDATA_ROLE_TRAINER ? (long long)atomic_load(&pulse->batches) : 0;
    const char *at = *pulse->at ? print("%.*s", (int)sizeof pulse->at - 1, pulse->at) : NULL;
    end.item = me.role == MPIDATA_ROLE_LOADER || me.role == MPIDATA_ROLE_LEARNER ? at : NULL;
    const int may_raise = me.role != MPIDATA_ROLE_SCHEDULER && me.role != MPIDATA_ROLE_LOADER && me.role != MPIDATA_ROLE_LEARNER;
    const int is_exception = may_raise && end.joined && WIFEXITED(end.status) && WEXITSTATUS(end.status);
    end.raised = is_exception ? at : NULL;
    /* After a scheduler was killed, others make that file, perhaps before this process has learned of it. */
    const int is_why = me.role == MPIDATA_ROLE_SCHEDULER && WIFSIGNALED(end.status);
    if (flags & MPIDATA_PULSE_LOST || (!is_why && access(watch.over, F_OK) == 0)) end.told = 1;
    return end;
}
