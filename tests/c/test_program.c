/* A carrier whose program cannot be started must not send a signal: kill(-1) reaches every process of the user. */
#include "../../launch/carrier/program.c"
#include "../../launch/parents/family.c"
#include "../../launch/parents/process.c"

#include "check.h"

static int signalled, forks_fail;

int kill(pid_t pid, int number) {
    CHECK(pid > 0);
    signalled++;
    return (int)syscall(SYS_kill, pid, number);
}

pid_t fork(void) {
    if (!forks_fail) return (pid_t)syscall(SYS_fork);
    errno = EAGAIN;
    return -1;
}

static int descriptors(void) {
    int n = 0;
    DIR *folder = opendir("/proc/self/fd");
    CHECK(folder);
    while (readdir(folder)) n++;
    closedir(folder);
    return n;
}

int main(void) {
    char launch[] = "env", run[] = "true", *launcher[] = {launch, NULL}, *arguments[] = {run, NULL}, *none[] = {NULL};
    const command_t commands[] = {{.n_launcher = 1, .launcher = launcher, .arguments = arguments}, {.arguments = arguments}};
    static ranks_t ranks;
    const int before = descriptors();
    for (int i = 0; i < 2; i++) {
        program_t program = {.descriptor = -1};
        forks_fail = 1;
        CHECK(program_start(&program, &commands[i], none) == MPIDATA_ERR_JOB);
        CHECK(strstr(mpidata_last_error(), "Cannot start a process: Resource temporarily unavailable."));
        CHECK(program_has_ended(&program));
        program_end(&program, &ranks);
        CHECK(!signalled && descriptors() == before);
        forks_fail = 0;
        CHECK(program_start(&program, &commands[i], none) == MPIDATA_SUCCESS);
        while (!program_has_ended(&program)) (void)usleep(1000);
        CHECK(WIFEXITED(program.status) && WEXITSTATUS(program.status) == 0);
        program_end(&program, &ranks);
        CHECK(descriptors() == before);
    }
    return 0;
}
