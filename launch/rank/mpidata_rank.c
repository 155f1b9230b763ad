/* mpidata-rank RUN_FOLDER: what the launcher starts on every rank of a job.
 * mpidata-rank RUN_FOLDER --group 7 [name=value ...]: a rank of a group that the job has spawned; the values replace
 * {name} in the arguments of a program that is started for each simulation.
 * mpidata-rank RUN_FOLDER --loader 7: a loader that the job has spawned; --inference 7: an inference rank; --learner 7: a learner.
 *
 * It reads its rank from the launcher's environment and the job's layout from RUN_FOLDER/private/plan, and runs the program of
 * its role as its child, with the output in RUN_FOLDER/logs. It stays as the parent and passes the end on: if the program
 * exits with 0, so does it; otherwise it leaves a note in RUN_FOLDER/exits and then kills itself, because MPI reports to the
 * other ranks only a death by signal. Through a page of memory (pulse.h) it learns the program's state, and ends the program if
 * it hangs. It does not use MPI: the child inherits the launcher's environment and joins with it.
 *
 * Exit status: 0, or 1 with a sentence on standard error if the program could not be started at all. */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "family.h"
#include "rank.h"

static void set(const char *name, const char *value, int over)
{
    if (setenv(name, value, over)) refuse("Cannot set %s: %s. Rank %ld.", name, strerror(errno), me.rank);
}

/* Whether the whole job is on this host, according to the launcher. */
static int on_one_host(void)
{
    const char *nodes = getenv("SLURM_STEP_NUM_NODES");
    const long world = number(getenv("OMPI_COMM_WORLD_SIZE")), here = number(getenv("OMPI_COMM_WORLD_LOCAL_SIZE"));
    return nodes && getenv("SLURM_STEP_ID") ? number(nodes) == 1 : world > 0 && here == world;
}

/* Without one, accelerate takes each trainer for the only one, unless it is set to use the CPU. */
static int has_accelerator(void)
{
    static const char *const devices[] = {"/dev/nvidiactl", "/dev/kfd", "/dev/dri/renderD128", "/dev/accel", "/dev/dxg",
                                          "/dev/davinci_manager", "/dev/hl0", "/dev/cambricon_ctl", "/dev/mtgpu.0"};
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (!access(devices[i], F_OK)) return 1;
    return 0;
}

/* Set the variables of torchrun, so that libraries that read them (Lightning, accelerate) take the trainers, not all ranks of
 * the job, for their processes. MASTER_ADDR and MASTER_PORT come from `mpidata run` or from the script. */
static void set_ranks_of_trainers(const mpidata_plan *plan)
{
    const long rank = me.index * plan->ranks_per_replica + (me.role == MPIDATA_ROLE_MATE ? me.rank_in_group : 0);
    const int size = plan->trainers * plan->ranks_per_replica;
    /* The scheduler has the first place of its host; the true value is only known when MPI runs. */
    long local = number(getenv("OMPI_COMM_WORLD_LOCAL_RANK"));
    if (local < 0) local = number(getenv("SLURM_LOCALID"));
    if (local == me.rank) local--;
    set("RANK", print("%ld", rank), 1);
    set("WORLD_SIZE", print("%d", size), 1);
    const int known = plan->ranks_per_replica == 1 && local >= 0 && local <= rank;
    set("LOCAL_RANK", print("%ld", known ? local : rank), 1);
    set("TORCHELASTIC_RUN_ID", me.run_folder, 1);
    if (!has_accelerator()) set("ACCELERATE_USE_CPU", "true", 0);
    if (!on_one_host()) return;
    set("LOCAL_WORLD_SIZE", print("%d", size), 1);
    set("GROUP_RANK", "0", 1);
}

static void set_environment(const mpidata_plan *plan)
{
    set("MPIDATA_RUN", me.run_folder, 1);
    set("MPIDATA_MPI", MPIDATA_BUILT_WITH, 1); /* libmpidata compares it */
    set("PYTHONUNBUFFERED", "1", 0); /* or the last words of a killed program are lost */
    /* Open MPI's remote writes over TCP crash a receiver whose sender dies in the middle of a large message. */
    if (plan->fault_tolerant) set("OMPI_MCA_btl_tcp_flags", "send", 0);
    if (me.role == MPIDATA_ROLE_TRAINER || me.role == MPIDATA_ROLE_MATE) set_ranks_of_trainers(plan);
    for (char **pair = plan->environment[me.role]; pair && *pair; pair++) {
        if (plan->carried && me.role == MPIDATA_ROLE_SOLVER && strncmp(*pair, "MPIDATA_NAMES=", 14)) continue; /* for its program */
        char *value = strchr(*pair, '=');
        if (!value) refuse("'%s' is not NAME=value. %s/" MPIDATA_RUN_PLAN ". Start the job again.", *pair, me.run_folder);
        *value++ = 0;
        set(*pair, value, 1);
    }
}

/* Set variables for a solver: its group and, if it is started for one simulation, that and its parameters. */
static void tell_solver(const mpidata_plan *plan, char **assignments)
{
    if (me.role != MPIDATA_ROLE_SOLVER || plan->carried) return; /* a carrier sets them for its program */
    set("MPIDATA_GROUP", print("%ld", me.index), 1);
    for (; me.spawned && plan->per_simulation && *assignments; assignments++) {
        const size_t length = strcspn(*assignments, "=");
        const int number = !strncmp(*assignments, "simulation=", length + 1);
        char *name = number ? print("MPIDATA_SIMULATION") : print("MPIDATA_PARAM_%.*s", (int)length, *assignments);
        for (char *letter = name; *letter; letter++) *letter = (char)toupper((unsigned char)*letter);
        set(name, *assignments + length + ((*assignments)[length] != 0), 1);
        if (number) break; /* the rest is for the case */
    }
}

static _Noreturn void become_program(char **arguments, pid_t parent, int log, int report, const sigset_t *mask)
{
    const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    /* A launcher forwards it to all. Only the scheduler handles it, and must not die of it before it can. */
    signal(SIGUSR1, SIG_IGN);
    (void)prctl(PR_SET_PTRACER, parent); /* else gdb, which the parent may start, could not attach */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent && sigprocmask(SIG_SETMASK, mask, NULL) == 0
        && null >= 0 && dup2(null, 0) >= 0 && dup2(log, 1) >= 0 && dup2(log, 2) >= 0)
        execvp(arguments[0], arguments);
    const int error = errno;
    if (write(report, &error, sizeof error) < 0) _exit(126);
    _exit(127);
}

/* Start the program; *error: errno if it could not be started, else 0. */
static pid_t start(char **arguments, int log, const sigset_t *mask, int *error)
{
    int ends[2];
    const pid_t parent = getpid();
    if (pipe2(ends, O_CLOEXEC)) refuse("Cannot make a pipe: %s. Rank %ld.", strerror(errno), me.rank);
    const pid_t child = fork();
    if (child < 0) refuse("Cannot start a process: %s. Rank %ld. See `ulimit -u`.", strerror(errno), me.rank);
    if (child == 0) become_program(arguments, parent, log, ends[1], mask);
    close(ends[1]);
    if (read(ends[0], error, sizeof *error) != (ssize_t)sizeof *error) *error = 0;
    close(ends[0]);
    return child;
}

static const char *why_not(const char *program, int error)
{
    if (error != ENOENT || access(program, F_OK)) return strerror(error);
    return "the file exists, but not the interpreter that its first line names";
}

/* Block the signals that `watch` takes; *mask: those blocked before. */
static void take_signals(sigset_t *mask)
{
    const pid_t launcher = getppid();
    const int taken[] = {SIGTERM, SIGINT, SIGUSR1, SIGCHLD, SIGRTMIN};
    sigset_t signals;
    sigemptyset(&signals);
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) sigaddset(&signals, taken[i]);
    sigprocmask(SIG_BLOCK, &signals, mask);
    signal(SIGCHLD, SIG_DFL); /* if a launcher ignores it, which is inherited, no child could be waited for */
    prctl(PR_SET_PDEATHSIG, SIGRTMIN);
    if (getppid() != launcher) exit(1);
}

static void read_arguments(int argc, char **argv)
{
    static const struct { const char *option; int role; } kinds[] = {
        {"--loader", MPIDATA_ROLE_LOADER}, {"--inference", MPIDATA_ROLE_INFERENCE}, {"--learner", MPIDATA_ROLE_LEARNER}};
    me.role = MPIDATA_ROLE_SOLVER;
    me.spawned = argc > 3 && strcmp(argv[2], "--group") == 0;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && argc == 4; i++)
        if (strcmp(argv[2], kinds[i].option) == 0) me.role = kinds[i].role, me.spawned = 1;
    me.index = me.spawned ? number(argv[3]) : 0;
    if ((argc != 2 && !me.spawned) || me.index < 0)
        refuse("mpidata-rank takes one argument, the run folder. Use `mpidata run JOB` instead.");
    me.run_folder = argv[1];
}

/* " on <host>" if the job uses several hosts, else "". */
static const char *on_host(void)
{
    char host[256] = "";
    if (access(print("%s/" MPIDATA_RUN_HOSTS, me.run_folder), F_OK) || gethostname(host, sizeof host - 1)) return "";
    return print(" on %s", host);
}

/* The log of each rank starts with the name of its host. */
static void say_host(int log)
{
    const char *where = on_host();
    if (*where) dprintf(log, "mpidata: %s is%s\n", rank_name(), where);
}

static char **own_arguments(const mpidata_plan *plan, char **assignments)
{
    char **arguments = plan->arguments[me.role];
    if (!arguments)
        refuse("The plan has no program for the %s. %s/" MPIDATA_RUN_PLAN ".", mpidata_role_name(me.role), me.run_folder);
    if (me.spawned && plan->per_simulation) fill_in(arguments + 1, assignments);
    return arguments;
}

/* The sentence on how its program ended. */
static const char *how_it_ended(const end_t *end, const char *log)
{
    if (end->error) return end->error;
    if (end->aborted)
        return print("A program called MPI_Abort with %d: %s. Its output is in %s.", end->abort_code, rank_name(), log);
    if (end->silent_s > 0)
        return print("A program was silent for %.1f s%s, longer than %s allows, and was ended: %s. Its output is in %s.",
                     end->silent_s, end->stopped ? " (a signal had stopped it)" : "", end->silent_key, rank_name(), log);
    return print("A program ended with %s %d: %s. Its output is in %s.",
                 WIFSIGNALED(end->status) ? "signal" : "exit status",
                 WIFSIGNALED(end->status) ? WTERMSIG(end->status) : WEXITSTATUS(end->status), rank_name(), log);
}

/* Print the last line to the launcher's log, if nobody requested the end or if the program refused to start: another rank that
 * also did may have been ended by the launcher before it could report. If the exit note could not be written, report to the
 * user. */
static void say(const end_t *end, int refused, const char *log, const char *unwritten)
{
    if (end->told && !refused) return;
    const char *how = how_it_ended(end, log);
    fprintf(stderr, "mpidata: %s\n", how);
    if (unwritten) say_aside(print("%s The exit note in %s/" MPIDATA_RUN_EXITS " cannot be written: %s.", how, me.run_folder, unwritten));
}

/* Not a fault, but output may be lost, so it is reported. */
static void say_left_in_finalize(const end_t *end, int log)
{
    if (end->final_s == 0) return;
    char *sentence = print("MPI_Finalize did not return within %.0f s, as happens if a rank has died, so its process was ended:"
                           " %s. Output that the program had not flushed is lost.", end->final_s, rank_name());
    dprintf(log, "mpidata: %s\n", sentence);
    fprintf(stderr, "mpidata: %s\n", sentence);
}

/* Report a program that ended without MPI_Finalize, for which MPI may wait in the MPI_Finalize of all others, and leave a file
 * for their mpidata-rank in the folder of exit notes. Without fault tolerance, the launcher ends the job. */
static char *without_finalize(const mpidata_plan *plan, const char *log_path, int log)
{
    char *sentence = print("%s ended without MPI_Finalize, so all others wait in theirs. Call MPI_Finalize at the end"
                           " of the program. Its output is in %s.", rank_name(), log_path);
    dprintf(log, "mpidata: %s\n", sentence);
    if (!plan->fault_tolerant) return sentence;
    fprintf(stderr, "mpidata: %s\n", sentence);
    const char *path = print("%s/" MPIDATA_RUN_EXITS "/without-finalize-%s", me.run_folder, file_name(0));
    const int file = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (file >= 0) close(file);
    return NULL;
}

/* End the remaining processes of a carrier's program, wherever they are. */
static void end_family(int in_order)
{
    for (const uint64_t until = now_ns() + 2 * SECOND; (in_order ? kill_family() : end_carried()) && now_ns() < until;) {
        while (waitpid(-1, NULL, WNOHANG) > 0) {}
        (void)usleep(5000);
    }
}

static char *of_program(const char *word)
{
    const size_t length = strlen(word);
    return print("%s%s It is the program of %s.", word, length && word[length - 1] == '.' ? "" : ".", rank_name());
}

int main(int argc, char **argv)
{
    sigset_t mask;
    take_signals(&mask);
    before_refusal = leave_word;
    read_arguments(argc, argv);
    const long size = read_launcher();
    if (me.rank < 0) refuse("This process has no rank. Start it with mpirun or srun, or use `mpidata run JOB`.");
    const mpidata_plan plan = read_plan();
    find_role(&plan, size);
    me.speaks = 1;
    char *log_path = print("%s/" MPIDATA_RUN_LOGS "/%s", me.run_folder, file_name(1)), *pulse_name = NULL, *sentence = NULL;
    char **assignments = argv + (me.spawned ? 4 : argc), **arguments = own_arguments(&plan, assignments);
    const int log = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (log < 0) refuse("Cannot write %s: %s. Make the output folder writable.", log_path, strerror(errno));
    if (lseek(log, 0, SEEK_END) > 0) dprintf(log, "mpidata: Another start of this run.\n"); /* exits.py looks for it */
    const char *own_case = case_folder(&plan, assignments), *folder = own_case ? own_case : plan.folder;
    if (chdir(folder)) refuse("Cannot enter %s: %s. Host of rank %ld.", folder, strerror(errno), me.rank);
    if (own_case && strchr(arguments[0], '/') && *arguments[0] != '/') arguments[0] = print("%s/%s", plan.folder, arguments[0]);
    say_host(log);
    show_alive();
    set_environment(&plan);
    tell_solver(&plan, assignments);
    char *unprotected = plan.fault_tolerant && may_be_lost(&plan) && !plan.carried ? preload() : NULL;
    if (unprotected) dprintf(log, "mpidata: An MPI_Abort of this %s ends the job: %s.\n", mpidata_role_name(me.role), unprotected);
    me.carries = plan.carried && me.role == MPIDATA_ROLE_SOLVER;
    if (me.carries) adopt_orphans();
    const mpidata_pulse *pulse = open_pulse(&pulse_name);
    set(MPIDATA_PULSE_VARIABLE, pulse_name, 1);

    int error = 0, refused = 0;
    const off_t begun = lseek(log, 0, SEEK_END);
    const pid_t child = start(arguments, log, &mask, &error);
    if (error) {
        sentence = print("Cannot start '%s': %s. Program of %s, in %s%s. Build it, or correct `program` in the job file.",
                         arguments[0], why_not(arguments[0], error), rank_name(), plan.folder, on_host());
        dprintf(log, "mpidata: %s\n", sentence);
    }
    end_t end = watch(&plan, pulse, child);
    say_left_in_finalize(&end, log);
    if (own_case && me.rank_in_group == 0)
        end_case(assignments, !WIFEXITED(end.status) || WEXITSTATUS(end.status) || end.aborted || !(flags_of(pulse) & MPIDATA_PULSE_LEFT));
    if (me.carries) end_family(WIFEXITED(end.status) && WEXITSTATUS(end.status) == 0);
    if (me.carries && me.rank_in_group == 0) end_cases();
    const unsigned flags = flags_of(pulse);
    const int in_order = WIFEXITED(end.status) && WEXITSTATUS(end.status) == 0 && !(flags & MPIDATA_PULSE_LOST)
        && !end.aborted;
    const int left = (flags & MPIDATA_PULSE_LEFT) && !(flags & MPIDATA_PULSE_FINALIZING);
    if (in_order && !end.told && left && me.role != MPIDATA_ROLE_SCHEDULER)
        sentence = without_finalize(&plan, log_path, log);
    if (in_order && !sentence && (end.told || flags & MPIDATA_PULSE_LEFT)) {
        end_alive();
        return 0;
    }
    if (in_order && !sentence) sentence = unfinished(end.joined);
    else if (!sentence && WIFEXITED(end.status) && !end.joined) {
        char *word = own_word(log_path, begun);
        refused = word != NULL;
        sentence = word ? of_program(word) : foreign_launcher(WEXITSTATUS(end.status));
    }
    if (sentence) end.error = sentence;
    const char *unwritten = write_exit_note(&end);
    say(&end, refused, log_path, unwritten);
    if (!unwritten) end_alive();
    die(0);
}
