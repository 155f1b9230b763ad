/* A program for which others wait, because it was stopped or does not join the job, is reported to the user in a log that
 * `mpidata run` shows. Nothing is ended. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "family.h"
#include "rank.h"

static const double STOPPED_FIRST_S = 2;

static void tell(const char *sentence)
{
    const int log = open(print("%s/" MPIDATA_RUN_IDLE, me.run_folder), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC,
                         0666);
    fprintf(stderr, "mpidata: %s\n", sentence);
    if (log < 0) return;
    dprintf(log, "mpidata: %s\n", sentence);
    close(log);
}

/* Whether this rank must report that it is late: one rank of the world is enough. */
static int is_first(void)
{
    if (me.spawned) return 1;
    (void)mkdir(print("%s/" MPIDATA_RUN_WAITING, me.run_folder), 0755);
    const int file = open(print("%s/" MPIDATA_RUN_WAITING "/for", me.run_folder), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file >= 0) close(file);
    return file >= 0;
}

static void say_stopped(pid_t child, double after_s)
{
    char host[256] = "";
    if (gethostname(host, sizeof host - 1)) *host = 0;
    tell(print("The program of %s has been stopped for %.0f s, for example by SIGSTOP, and others wait for it. Continue it with"
               " `kill -CONT %ld` on %s, or end the job.", rank_name(), after_s, (long)child, host));
}

void say_if_held_up(held_up_t *held_up, pid_t child, unsigned flags, double awake_s, double after_s)
{
    if (held_up->said || flags & MPIDATA_PULSE_ENDS) return;
    if (!is_stopped(child)) held_up->stopped_at = 0;
    else if (held_up->stopped_at == 0) held_up->stopped_at = awake_s;
    const int stopped = held_up->stopped_at > 0 && awake_s - held_up->stopped_at >= after_s;
    /* The scheduler waits only for MPI. A stopped program is named first: others may wait for it in MPI_Init. */
    const int late = !(flags & (MPIDATA_PULSE_ARRIVED | MPIDATA_PULSE_JOINED)) && awake_s >= after_s + STOPPED_FIRST_S &&
                     me.role != MPIDATA_ROLE_SCHEDULER;
    if (!stopped && !late) return;
    held_up->said = 1;
    if (stopped) {
        if (!(flags & MPIDATA_PULSE_JOINED)) (void)is_first();
        say_stopped(child, after_s);
    } else if (is_first())
        tell(print("The program of %s has not joined the job %.0f s after its start: %s. Others wait for it.", rank_name(),
                   after_s, what_it_does(child)));
}
