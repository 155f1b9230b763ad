/* mpidata-rank RUN_FOLDER: what the launcher starts on every rank of a job.
 *
 * It reads its rank from the launcher's environment and the job's layout from RUN_FOLDER/plan, and runs the program of
 * its role as its child, with the output going to RUN_FOLDER/logs. It stays as the parent and passes the end on: exit 0
 * is exit 0; of anything else it leaves a record in RUN_FOLDER/exits and then kills itself, because MPI tells the other
 * ranks only of a death by signal. It does not use MPI: the child inherits the launcher's environment and joins with it.
 *
 * Exit status: 0, or 1 with a sentence on standard error if the program could not be started at all. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const ROLES[] = {"scheduler", "trainer", "solver"};
enum { SCHEDULER, TRAINER, SOLVER, N_ROLES };

typedef struct {
    char *folder;
    long world, trainers, groups, ranks_per_group;
    char **arguments[N_ROLES], **environment[N_ROLES]; /* each ends with NULL */
} plan_t;

static const char *run_folder;
static long my_rank = -1;
static int my_role, alone; /* alone: what all ranks find alike is behind us */
static long my_index, my_group_rank; /* trainer or group; rank within the group */

/* Of what all ranks find only rank 0 speaks, and first: a launcher ends all ranks as soon as one has failed. */
__attribute__((format(printf, 1, 2))) static _Noreturn void refuse(const char *format, ...)
{
    if (my_rank > 0 && !alone) {
        sleep(3);
    } else {
        va_list list;
        va_start(list, format);
        fputs("mpidata: ", stderr);
        vfprintf(stderr, format, list);
        fputc('\n', stderr);
        va_end(list);
    }
    exit(1);
}

__attribute__((format(printf, 1, 2))) static char *print(const char *format, ...)
{
    char *text = NULL;
    va_list list;
    va_start(list, format);
    if (vasprintf(&text, format, list) < 0) refuse("Out of memory. Rank %ld. Give the job more memory.", my_rank);
    va_end(list);
    return text;
}

/* A number from 0 to 10^9, or -1. */
static long number(const char *text)
{
    if (!text || !*text) return -1;
    char *end = NULL;
    errno = 0;
    const long value = strtol(text, &end, 10);
    return *end || errno || value < 0 || value > 1000000000 ? -1 : value;
}

/* Sets my_rank; returns the world's size as the launcher promised it, -1 where it does not say. */
static long read_launcher(void)
{
    const char *step = getenv("SLURM_STEP_ID"), *space = getenv("PMIX_NAMESPACE");
    const int slurm_pmix = step && space && strncmp(space, "slurm.", 6) == 0;
    if (getenv("OMPI_COMM_WORLD_RANK")) {
        my_rank = number(getenv("OMPI_COMM_WORLD_RANK"));
        return number(getenv("OMPI_COMM_WORLD_SIZE"));
    }
    if (getenv("PMIX_RANK")) {
        my_rank = number(getenv("PMIX_RANK"));
        return slurm_pmix ? number(getenv("SLURM_STEP_NUM_TASKS")) : -1;
    }
    if (getenv("PMI_RANK")) {
        my_rank = number(getenv("PMI_RANK"));
        return number(getenv("PMI_SIZE"));
    }
    my_rank = step ? number(getenv("SLURM_PROCID")) : -1; /* a batch script has SLURM_PROCID too, but no step */
    return step ? number(getenv("SLURM_STEP_NUM_TASKS")) : -1;
}

static void append(char ***list, const char *value)
{
    size_t n = 0;
    while (*list && (*list)[n]) n++;
    char **longer = realloc(*list, (n + 2) * sizeof *longer);
    if (!longer) refuse("Out of memory while reading the plan. Rank %ld. Give the job more memory.", my_rank);
    longer[n] = print("%s", value);
    longer[n + 1] = NULL;
    *list = longer;
}

static plan_t read_plan(void)
{
    plan_t plan = {.world = -1, .trainers = -1, .groups = -1, .ranks_per_group = -1};
    const struct { const char *key; long *value; } numbers[] = {
        {"world", &plan.world}, {"trainers", &plan.trainers}, {"groups", &plan.groups},
        {"ranks_per_group", &plan.ranks_per_group}};
    char *path = print("%s/plan", run_folder), *line = NULL;
    FILE *file = fopen(path, "re");
    if (!file) refuse("Cannot read %s: %s. Start the job with `mpidata run`.", path, strerror(errno));
    size_t room = 0;
    ssize_t length;
    int role = -1;
    for (long at = 1; (length = getline(&line, &room, file)) >= 0; at++) {
        if (length && line[length - 1] == '\n') line[length - 1] = 0;
        if (at == 1 && strcmp(line, "mpidata-plan 1") != 0)
            refuse("%s begins with '%s', not 'mpidata-plan 1'. Start the job with one version of mpidata.", path, line);
        char *value = strchr(line, ' ');
        if (!value) continue;
        *value++ = 0;
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
            if (strcmp(line, numbers[i].key) == 0) *numbers[i].value = number(value);
        if (strcmp(line, "folder") == 0) plan.folder = print("%s", value);
        if (strcmp(line, "program") == 0)
            for (role = N_ROLES - 1; role >= 0 && strcmp(value, ROLES[role]) != 0; role--) continue;
        if (role >= 0 && strcmp(line, "argument") == 0) append(&plan.arguments[role], value);
        if (role >= 0 && strcmp(line, "environment") == 0) append(&plan.environment[role], value);
    }
    fclose(file);
    if (!plan.folder || plan.world < 1 || plan.trainers < 0 || plan.groups < 0 || plan.ranks_per_group < 1
        || plan.world != 1 + plan.trainers + plan.groups * plan.ranks_per_group)
        refuse("%s has no complete layout of the ranks. Start the job with `mpidata run`.", path);
    return plan;
}

static void find_role(const plan_t *plan)
{
    my_role = my_rank == 0 ? SCHEDULER : my_rank <= plan->trainers ? TRAINER : SOLVER;
    my_index = my_role == TRAINER ? my_rank - 1 : 0;
    if (my_role != SOLVER) return;
    my_index = (my_rank - 1 - plan->trainers) / plan->ranks_per_group;
    my_group_rank = (my_rank - 1 - plan->trainers) % plan->ranks_per_group;
}

/* The rank in a sentence, or in the name of its log. */
static char *rank_name(int sentence)
{
    if (my_role == SCHEDULER) return print(sentence ? "rank %ld (the scheduler)" : "rank-%04ld-scheduler", my_rank);
    if (my_role == TRAINER)
        return print(sentence ? "rank %ld (trainer %ld)" : "rank-%04ld-trainer-%ld", my_rank, my_index);
    return print(sentence ? "rank %ld (a solver of group %ld)" : "rank-%04ld-solver-%ld-%ld", my_rank, my_index,
                 my_group_rank);
}

static void set(const char *name, const char *value, int over)
{
    if (setenv(name, value, over)) refuse("Cannot set %s: %s. Rank %ld.", name, strerror(errno), my_rank);
}

static void set_environment(const plan_t *plan)
{
    set("MPIDATA_RUN", run_folder, 1);
    set("PYTHONUNBUFFERED", "1", 0); /* or the last words of a killed program are lost */
    if (my_role == TRAINER) {
        /* The scheduler has the first place of its host; the true value is known when MPI runs. */
        long local = number(getenv("OMPI_COMM_WORLD_LOCAL_RANK"));
        if (local < 0) local = number(getenv("SLURM_LOCALID"));
        if (local == my_rank) local--;
        set("RANK", print("%ld", my_index), 1);
        set("WORLD_SIZE", print("%ld", plan->trainers), 1);
        set("LOCAL_RANK", print("%ld", local < 0 || local > my_index ? my_index : local), 1);
    }
    for (char **pair = plan->environment[my_role]; pair && *pair; pair++) {
        char *value = strchr(*pair, '=');
        if (!value) refuse("'%s' is no environment variable. %s/plan. Start the job again.", *pair, run_folder);
        *value++ = 0;
        set(*pair, value, 1);
    }
}

/* Leave exits/rank-NNNN: how the program ended, and `told`: whether this rank had been asked to end. */
static void write_record(int status, pid_t pid, int told, const char *error)
{
    char *path = print("%s/exits/rank-%04ld", run_folder, my_rank), *temporary = print("%s.new", path);
    FILE *file = fopen(temporary, "we");
    if (!file) return; /* the death itself still tells that something went wrong */
    fprintf(file, "{\"rank\": %ld, \"role\": \"%s\", ", my_rank, ROLES[my_role]);
    if (my_role != SCHEDULER) fprintf(file, "\"%s\": %ld, ", my_role == TRAINER ? "trainer" : "group", my_index);
    if (WIFSIGNALED(status)) fprintf(file, "\"exit\": null, \"signal\": %d, ", WTERMSIG(status));
    else fprintf(file, "\"exit\": %d, \"signal\": null, ", WEXITSTATUS(status));
    fprintf(file, "\"pid\": %ld, \"told\": %s, \"error\": ", (long)pid, told ? "true" : "false");
    if (error) fputc('"', file);
    for (const char *c = error; c && *c; c++) {
        if (*c == '"' || *c == '\\') fputc('\\', file);
        if ((unsigned char)*c >= ' ') fputc(*c, file);
    }
    fputs(error ? "\"}\n" : "null}\n", file);
    if (fclose(file) || rename(temporary, path)) unlink(temporary);
}

/* End with everything the program started; launchers give each rank a process group of its own. */
static _Noreturn void die(pid_t child)
{
    if (child > 0) kill(child, SIGKILL);
    if (getpgrp() == getpid()) kill(0, SIGKILL);
    for (;;) kill(getpid(), SIGKILL);
}

static _Noreturn void become_program(const plan_t *plan, pid_t parent, int log, int report, const sigset_t *mask)
{
    char **arguments = plan->arguments[my_role];
    const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    signal(SIGUSR1, my_role == SOLVER ? SIG_IGN : SIG_DFL); /* a launcher passes it to all; few solvers expect it */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent && sigprocmask(SIG_SETMASK, mask, NULL) == 0
        && null >= 0 && dup2(null, 0) >= 0 && dup2(log, 1) >= 0 && dup2(log, 2) >= 0)
        execvp(arguments[0], arguments);
    const int error = errno;
    if (write(report, &error, sizeof error) < 0) _exit(126);
    _exit(127);
}

/* libmpidata writes a 'j' into this pipe when the program joins the job, and an 'l' when it has left it in order. Its
 * number goes with its inode, so that a program that closed it cannot mistake another file for it. */
static int open_progress(void)
{
    int ends[2];
    struct stat status;
    if (pipe2(ends, O_NONBLOCK) || fcntl(ends[0], F_SETFD, FD_CLOEXEC) || fstat(ends[1], &status))
        refuse("Cannot make a pipe: %s. Rank %ld.", strerror(errno), my_rank);
    set("MPIDATA_RANK_PIPE", print("%d:%llu", ends[1], (unsigned long long)status.st_ino), 1);
    return ends[0];
}

/* What is wrong with a program that ended with status 0, or NULL. */
static char *unfinished(int progress, const char *name)
{
    char letters[16];
    const ssize_t n = read(progress, letters, sizeof letters);
    if (n > 0 && memchr(letters, 'l', (size_t)n)) return NULL;
    const char *join = my_role == TRAINER ? "creating an MPIStreamDataset" : "calling mpidata_init";
    const char *leave = my_role == TRAINER ? "its stream was closed" : "mpidata_finalize";
    if (n > 0) return print("The program of %s ended with exit status 0, but before %s. Let it end in order.", name, leave);
    return print("The program of %s ended with exit status 0 without %s. Is it the right program?", name, join);
}

static pid_t start(const plan_t *plan, int log, int *report, const sigset_t *mask)
{
    int ends[2];
    const pid_t parent = getpid();
    if (pipe2(ends, O_CLOEXEC)) refuse("Cannot make a pipe: %s. Rank %ld.", strerror(errno), my_rank);
    const pid_t child = fork();
    if (child < 0) refuse("Cannot start a process: %s. Rank %ld. See `ulimit -u`.", strerror(errno), my_rank);
    if (child == 0) become_program(plan, parent, log, ends[1], mask);
    close(ends[1]);
    *report = ends[0];
    return child;
}

/* Wait for the child's end and return its status; `told` becomes 1 when this rank is asked to end meanwhile. */
static int wait_for(pid_t child, const sigset_t *signals, int *told)
{
    for (;;) {
        int status = 0;
        const int signal_number = sigwaitinfo(signals, NULL);
        if (signal_number == SIGRTMIN) die(child); /* the launcher is gone */
        if (signal_number == SIGTERM || signal_number == SIGINT) { /* comes before a SIGCHLD that waits too */
            *told = 1;
            kill(child, signal_number);
        }
        if (waitpid(child, &status, WNOHANG) == child) return status;
    }
}

int main(int argc, char **argv)
{
    const pid_t launcher = getppid();
    const int taken[] = {SIGTERM, SIGINT, SIGCHLD, SIGRTMIN};
    sigset_t signals, mask;
    sigemptyset(&signals);
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) sigaddset(&signals, taken[i]);
    sigprocmask(SIG_BLOCK, &signals, &mask);
    signal(SIGUSR1, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGRTMIN);
    if (getppid() != launcher) return 1;

    if (argc != 2) refuse("mpidata-rank takes one argument, the run folder. Use `mpidata run JOB` instead.");
    run_folder = argv[1];
    const long size = read_launcher();
    if (my_rank < 0) refuse("This process has no rank. Start it with mpirun or srun, or use `mpidata run JOB`.");
    const plan_t plan = read_plan();
    if ((size >= 0 && size != plan.world) || my_rank >= plan.world)
        refuse("The launcher started %ld ranks, but the job has %ld. %s/plan. Start it with -n %ld, and with the mpirun of"
               " the MPI that mpidata is built with.", size, plan.world, run_folder, plan.world);
    find_role(&plan);
    alone = 1;
    if (!plan.arguments[my_role]) refuse("The plan has no program for the %s. %s/plan.", ROLES[my_role], run_folder);
    char *name = rank_name(1), *log_path = print("%s/logs/%s.log", run_folder, rank_name(0));
    const int log = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (log < 0) refuse("Cannot write %s: %s. Make the output folder writable.", log_path, strerror(errno));
    if (chdir(plan.folder)) refuse("Cannot enter %s: %s. Host of rank %ld.", plan.folder, strerror(errno), my_rank);
    set_environment(&plan);

    int report = -1, error = 0, told = 0;
    char *sentence = NULL;
    const int progress = open_progress();
    const pid_t child = start(&plan, log, &report, &mask);
    if (read(report, &error, sizeof error) == (ssize_t)sizeof error) {
        sentence = print("Cannot start '%s': %s. Program of %s, in %s. Build it, or correct `program` in the job file.",
                         plan.arguments[my_role][0], strerror(error), name, plan.folder);
        dprintf(log, "mpidata: %s\n", sentence);
    }
    close(report);
    const int status = wait_for(child, &signals, &told);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && (told || !(sentence = unfinished(progress, name)))) return 0;
    write_record(status, child, told, sentence);
    if (!told && sentence) fprintf(stderr, "mpidata: %s\n", sentence);
    else if (!told)
        fprintf(stderr, "mpidata: A program ended with %s %d: %s. Its output is in %s.\n",
                WIFSIGNALED(status) ? "signal" : "exit status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), name, log_path);
    die(0);
}
