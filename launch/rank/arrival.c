/* A program that does not join the job, so that all others wait for it: what it is doing instead. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process.h"
#include "rank.h"

enum { STACK_MS = 15000, STACK_BYTES = 8192 };

static char *first_line(pid_t pid, const char *name)
{
    char line[512] = "";
    FILE *file = open_file_of(pid, name);
    if (file && !fgets(line, sizeof line, file)) *line = 0;
    if (file) fclose(file);
    line[strcspn(line, "\n")] = 0;
    return print("%s", line);
}

/* For example "it sleeps (state S, in ...)", with the kernel function in which it sleeps. */
char *what_it_does(pid_t child)
{
    static const struct { char letter; const char *meaning; } states[] = {
        {'R', "computes, or waits without sleeping"}, {'S', "sleeps"}, {'D', "waits for a disk or a file system"},
        {'T', "was stopped by a signal"}, {'t', "is stopped by a debugger"}, {'Z', "has ended"}};
    pid_t parent;
    const char state = state_of(child, &parent), letter = state ? state : '?', *meaning = "is in an unknown state";
    const char *where = first_line(child, "wchan");
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (states[i].letter == letter) meaning = states[i].meaning;
    return print("it %s (state %c%s%s)", meaning, letter, *where && strcmp(where, "0") ? ", in " : "",
                 *where && strcmp(where, "0") ? where : "");
}

static _Noreturn void become_gdb(pid_t child, int out)
{
    char pid[32];
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    (void)snprintf(pid, sizeof pid, "%ld", (long)child);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)unsetenv("LD_PRELOAD");
    if (null >= 0 && dup2(null, 0) >= 0 && dup2(out, 1) >= 0 && dup2(null, 2) >= 0)
        execlp("gdb", "gdb", "-nx", "-batch", "-p", pid, "-ex", "bt 40", (char *)NULL);
    _exit(127);
}

/* Read until the end, but at most for a fixed time. */
static void read_for_a_while(int from, char *text, size_t room)
{
    const uint64_t until = now_ns() + STACK_MS * UINT64_C(1000000);
    size_t length = 0;
    for (uint64_t now; length + 1 < room && (now = now_ns()) < until;) {
        struct pollfd ready = {.fd = from, .events = POLLIN};
        if (poll(&ready, 1, (int)((until - now) / 1000000) + 1) <= 0) continue;
        const ssize_t got = read(from, text + length, room - 1 - length);
        if (got <= 0) break;
        length += (size_t)got;
    }
    text[length] = 0;
}

enum { NO_STACK, STACK, STACK_IN_INIT, STACK_IN_FINALIZE };

/* Append the stack to the log, if gdb exists and may attach; not for a program at its end, whose output has the cause. */
static int log_stack(pid_t child, const char *log)
{
    char text[STACK_BYTES], *rest = NULL;
    int ends[2], lines = 0, in_init = 0;
    if (pipe2(ends, O_CLOEXEC)) return 0;
    const pid_t gdb = fork();
    if (gdb == 0) become_gdb(child, ends[1]);
    close(ends[1]);
    *text = 0;
    if (gdb > 0) {
        read_for_a_while(ends[0], text, sizeof text);
        kill(gdb, SIGKILL);
        waitpid(gdb, NULL, 0);
        kill(child, SIGCONT); /* a debugger that is killed leaves it stopped */
    }
    close(ends[0]);
    if (strstr(text, "MPI_Finalize")) return STACK_IN_FINALIZE;
    FILE *file = fopen(log, "ae");
    for (char *line = strtok_r(text, "\n", &rest); file && line; line = strtok_r(NULL, "\n", &rest)) {
        if (*line != '#') continue;
        fprintf(file, "%s%s\n", lines++ ? "" : "mpidata: Its stack when it was ended:\n", line);
        in_init |= strstr(line, "MPI_Init") != NULL;
    }
    if (file) fclose(file);
    return in_init ? STACK_IN_INIT : lines ? STACK : NO_STACK;
}

static const char *advice(int stack)
{
    if (stack == STACK_IN_INIT)
        return "It is in MPI_Init, which waits for all ranks: another one has not called it. A training script does when it"
               " creates the MPIStreamDataset: let it do so early.";
    if (stack == STACK_IN_FINALIZE)
        return "It has ended and is in MPI_Finalize, which waits for all ranks: its output says why it ended.";
    if (me.role > MPIDATA_ROLE_SOLVER && me.role != MPIDATA_ROLE_MATE) return "All ranks wait for it.";
    if (me.role != MPIDATA_ROLE_SOLVER) return "Create the MPIStreamDataset early in the script: all ranks wait for it.";
    return "The usual cause is a call on MPI_COMM_WORLD, its own or a library's: that holds all ranks of the job, and waits"
           " for them. Call mpidata_init first and use the communicator that it returns, or set 'start: spawn',"
           " with which MPI_COMM_WORLD holds the ranks of one group.";
}

char *late(const mpidata_plan *plan, pid_t child)
{
    const char *log = print("%s/" MPIDATA_RUN_LOGS "/%s", me.run_folder, file_name(1)), *state = what_it_does(child);
    const int stack = log_stack(child, log);
    return print("The program of %s %s %.0f s after its start: %s%s. %s If it needs this long, raise"
                 " launch.join_timeout_s.", rank_name(),
                 me.role == MPIDATA_ROLE_SOLVER   ? "had not called mpidata_init"
                 : me.role == MPIDATA_ROLE_TRAINER || me.role == MPIDATA_ROLE_MATE ? "had not created an MPIStreamDataset"
                                                   : "had not joined the job",
                 plan->join_timeout_s, state,
                 stack == NO_STACK ? "" : print("; its %s is in %s", stack == STACK_IN_FINALIZE ? "output" : "stack", log),
                 advice(stack));
}
