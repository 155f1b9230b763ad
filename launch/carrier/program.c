/* The program, or its launcher: starting it, and ending it with all that it has started. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/wait.h"
#include "carrier.h"
#include "containers/text_list.h"
#include "family.h"

extern char **environ;

/* Whether a variable was in the environment of `mpidata run`, whose names are listed as ":NAME:...:". */
static int is_inherited(const char *variable, const char *names) {
    const size_t length = strcspn(variable, "=");
    for (const char *at = names; (at = strchr(at, ':')); at++)
        if (strncmp(at + 1, variable, length) == 0 && at[1 + length] == ':') return 1;
    return 0;
}

static int begins_with(const char *variable, const char *const *beginnings, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (strncmp(variable, beginnings[i], strlen(beginnings[i])) == 0) return 1;
    return 0;
}

/* Variables that launchers and MPIs set for their ranks: the program is not a rank of this job. Variables that the user has set
 * for an MPI stay, if they can be distinguished. */
static int is_of_the_job(const char *variable) {
    static const char *const of_mpis[] = {"OMPI_", "OPAL_", "PMIX_", "PMI_", "PRTE_", "HYDI_", "HYDRA_", "UCX_"};
    static const char *const of_users[] = {"OMPI_MCA_", "PMIX_MCA_", "PRTE_MCA_", "UCX_"};
    static const char *const others[] = {"SLURM_STEP", "SLURM_CPU_BIND", "SLURM_PROCID=", "SLURM_LOCALID=", "SLURM_NTASKS_PER_NODE=",
                                         "MPI_LOCALNRANKS=", "MPI_LOCALRANKID=", "MPIDATA_RUN=", "MPIDATA_PULSE=", "MPIDATA_MPI=",
                                         "MPIDATA_NAMES=", "MPIDATA_ASIDE="};
    const char *names = getenv("MPIDATA_NAMES");
    if (names && !is_inherited(variable, names)) return 1;
    if (names && begins_with(variable, of_users, sizeof of_users / sizeof *of_users)) return 0;
    return begins_with(variable, of_mpis, sizeof of_mpis / sizeof *of_mpis) ||
           begins_with(variable, others, sizeof others / sizeof *others);
}

/* Assignments for the environment replace existing ones. */
static int is_assigned(const char *variable, char **assignments) {
    return mpidata_texts_value(assignments, variable, strcspn(variable, "=")) != NULL;
}

static char **environment(char **assignments) {
    char **result = calloc(mpidata_texts_count(environ) + mpidata_texts_count(assignments) + 1, sizeof *result);
    size_t n = 0;
    for (char **variable = environ; result && *variable; variable++)
        if (!is_of_the_job(*variable) && !is_assigned(*variable, assignments)) result[n++] = *variable;
    for (; result && *assignments; assignments++) result[n++] = *assignments;
    return result;
}

/* "mpirun -n 4", "env NAME=value ...", "program argument ...": a launcher passes this command to every host. */
static char **whole_command(const command_t *command, char **assignments) {
    static char env[] = "env";
    const size_t n = mpidata_texts_count(command->arguments), set = mpidata_texts_count(assignments);
    char **whole = calloc((size_t)command->n_launcher + 1 + set + n + 1, sizeof *whole);
    if (!whole) return NULL;
    char **end = whole;
    for (int i = 0; i < command->n_launcher; i++) *end++ = command->launcher[i];
    if (command->n_launcher) {
        *end++ = env;
        for (size_t i = 0; i < set; i++) *end++ = assignments[i];
    }
    for (size_t i = 0; i < n; i++) *end++ = command->arguments[i];
    return whole;
}

/* Close what MPI has opened in this process: if the program held a connection, a death would not be noticed. */
static void close_all_but_output(void) {
    DIR *open_ones = opendir("/proc/self/fd");
    for (struct dirent *entry; open_ones && (entry = readdir(open_ones));) {
        const int file = atoi(entry->d_name);
        if (file > 2) (void)fcntl(file, F_SETFD, FD_CLOEXEC);
    }
    if (open_ones) closedir(open_ones);
}

static _Noreturn void become(char **arguments, char **variables, const command_t *command, pid_t parent, int report) {
    sigset_t none;
    cpu_set_t all;
    sigemptyset(&none);
    memset(&all, 0xff, sizeof all);
    (void)sched_setaffinity(0, sizeof all, &all); /* not the carrier's cores: as far as the system allows */
    close_all_but_output();
    (void)setpgid(0, 0); /* `kill 0` of a script, or a signal of a launcher to its former group, must not reach the carrier */
    signal(SIGUSR1, SIG_IGN); /* a launcher forwards it to all */
    signal(SIGPIPE, SIG_DFL);
    /* A launcher that is asked to end also ends the ranks on other hosts. */
    if (prctl(PR_SET_PDEATHSIG, command->n_launcher ? SIGTERM : SIGKILL) == 0 && getppid() == parent
        && sigprocmask(SIG_SETMASK, &none, NULL) == 0 && (!command->folder || chdir(command->folder) == 0))
        execvpe(arguments[0], arguments, variables);
    const int error = errno;
    if (write(report, &error, sizeof error) < 0) _exit(126);
    _exit(127);
}

static int start(program_t *program, const command_t *command, char **whole, char **variables) {
    int ends[2], error = 0;
    const pid_t parent = getpid();
    if (pipe2(ends, O_CLOEXEC)) return mpidata_error(MPIDATA_ERR_JOB, "Cannot make a pipe: %s.", strerror(errno));
    const pid_t child = fork();
    if (child == 0) become(whole, variables, command, parent, ends[1]);
    if (child < 0) error = errno;
    close(ends[1]);
    const int failed = child > 0 && read(ends[0], &error, sizeof error) == (ssize_t)sizeof error;
    close(ends[0]);
    /* Never -1: a signal to that would reach every process of the user. */
    *program = (program_t){.pid = child > 0 ? child : 0, .descriptor = -1, .is_launched = command->n_launcher > 0};
    if (child < 0) return mpidata_error(MPIDATA_ERR_JOB, "Cannot start a process: %s. See `ulimit -u`.", strerror(error));
    if (failed)
        return mpidata_error(MPIDATA_ERR_JOB, "Cannot start '%.200s': %s. Build it, or correct solvers.%s in the job file.",
                             whole[0], strerror(error), program->is_launched ? "carried.launcher" : "program");
    program->descriptor = (int)syscall(SYS_pidfd_open, child, 0);
    return MPIDATA_SUCCESS;
}

int program_start(program_t *program, const command_t *command, char **assignments) {
    char **whole = whole_command(command, assignments), **variables = environment(assignments);
    const int status = whole && variables ? start(program, command, whole, variables)
                                          : mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for starting the program.");
    free(whole);
    free(variables);
    return status;
}

/* This process is a subreaper: orphans of the program become its children. */
static void reap(program_t *program) {
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        if (pid != program->pid) continue;
        program->status = status;
        program->pid = 0;
        if (program->descriptor >= 0) close(program->descriptor);
        program->descriptor = -1;
    }
}

int program_has_ended(program_t *program) {
    if (program->pid) reap(program);
    return !program->pid;
}

static void pause_ms(long ms) { nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL); }

void program_end(program_t *program, const ranks_t *ranks) {
    static const double PATIENCE_S = 3;
    /* A launcher ends its ranks and removes its own files. */
    if (program->pid > 0 && program->is_launched) {
        kill(program->pid, SIGTERM);
        for (const double until = mpidata_now() + PATIENCE_S; mpidata_now() < until && !program_has_ended(program);) pause_ms(10);
    }
    for (int i = 0; i < ranks->n; i++)
        if (ranks->all[i].process >= 0 && ranks->all[i].shared)
            (void)syscall(SYS_pidfd_send_signal, ranks->all[i].process, SIGKILL, NULL, 0);
    for (const double until = mpidata_now() + PATIENCE_S; kill_family() && mpidata_now() < until; pause_ms(5))
        reap(program);
    if (*ranks->group_mark) (void)kill_marked(ranks->mark, ranks->group_mark);
    reap(program);
}

const char *program_how(const program_t *program) {
    static char text[64];
    const int signalled = WIFSIGNALED(program->status);
    (void)snprintf(text, sizeof text, "%s %d", signalled ? "signal" : "exit status",
                   signalled ? WTERMSIG(program->status) : WEXITSTATUS(program->status));
    return text;
}
