/* A solver that sets all process state that a program may set, and checks after each call that it is unchanged: errno,
 * floating-point traps, rounding, flags and flushing, the locale, signals, their alternate stack, the umask and cwd. */
#define _GNU_SOURCE
#include <errno.h>
#include <fenv.h>
#include <float.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#ifdef __SSE2__
#include <xmmintrin.h>
#endif
#ifdef CARRIED
#include <mpidata_carried.h>
#else
#include <mpidata.h>
#endif

enum { N = 12, ERRNO = 4242, TRAPS = FE_ALL_EXCEPT };

static volatile sig_atomic_t alarms;
static struct {
    stack_t stack;
    char locale[256], folder[4096];
    unsigned flushing;
} before;

static unsigned flushing(void) {
#ifdef __SSE2__
    return _mm_getcsr() & 0x8040u;
#else
    return 0;
#endif
}

static void on_alarm(int number) {
    (void)number;
    alarms++;
}

static int handler_of(int number, void (*is)(int)) {
    struct sigaction action;
    return !sigaction(number, NULL, &action) && action.sa_handler == is;
}

static void must(int holds, const char *what, const char *call) {
    if (holds) return;
    (void)fedisableexcept(FE_ALL_EXCEPT);
    (void)fprintf(stderr, "NOT KEPT after %s: %s. %s\n", call, what, mpidata_last_error());
    _exit(3);
}

/* Checks that the last call has left all as it was. */
static int kept(int status, const char *call) {
    sigset_t blocked;
    stack_t stack;
    char folder[4096];
    must(errno == ERRNO, "errno", call);
    must(fegetexcept() == TRAPS, "traps", call);
    must(fegetround() == FE_UPWARD, "rounding", call);
    must(fetestexcept(FE_ALL_EXCEPT) == 0, "flags", call);
    must(flushing() == before.flushing, "flushing", call);
    must(!strcmp(setlocale(LC_ALL, NULL), before.locale), "locale", call);
    must(handler_of(SIGCHLD, SIG_IGN), "SIGCHLD", call);
    must(handler_of(SIGPIPE, on_alarm), "SIGPIPE", call);
    must(handler_of(SIGALRM, on_alarm), "SIGALRM", call);
    must(!sigprocmask(SIG_SETMASK, NULL, &blocked), "blocked signals", call);
    for (int i = 1; i < 32; i++) must(sigismember(&blocked, i) == (i == SIGUSR2), "blocked signals", call);
    must(!sigaltstack(NULL, &stack) && stack.ss_sp == before.stack.ss_sp && stack.ss_flags == before.stack.ss_flags, "stack", call);
    must(umask(077) == 077, "umask", call);
    must(getcwd(folder, sizeof folder) && !strcmp(folder, before.folder), "folder", call);
    errno = ERRNO;
    return status;
}
#define KEPT(call) kept(call, #call)

static void set_all(void) {
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_ONSTACK}; /* interrupts calls */
    sigset_t blocked;
    before.stack = (stack_t){.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    (void)snprintf(before.locale, sizeof before.locale, "%s", setlocale(LC_ALL, NULL));
    (void)sigaltstack(&before.stack, NULL);
    (void)signal(SIGCHLD, SIG_IGN);
    (void)sigaction(SIGPIPE, &action, NULL);
    (void)sigaction(SIGALRM, &action, NULL);
    (void)sigemptyset(&blocked);
    (void)sigaddset(&blocked, SIGUSR2);
    (void)sigprocmask(SIG_SETMASK, &blocked, NULL);
    (void)umask(077);
    if (chdir("/") || !getcwd(before.folder, sizeof before.folder)) _exit(4);
    const struct itimerval often = {.it_interval = {.tv_usec = 2000}, .it_value = {.tv_usec = 2000}};
    (void)setitimer(ITIMER_REAL, &often, NULL);
#ifdef __SSE2__
    _mm_setcsr(_mm_getcsr() | 0x8040u); /* small numbers, given or made, are 0 */
#endif
    before.flushing = flushing();
    (void)fesetround(FE_UPWARD);
    (void)feclearexcept(FE_ALL_EXCEPT);
    (void)feenableexcept(TRAPS);
    errno = ERRNO;
}

static void unset_all(void) {
    const struct itimerval never = {{0}, {0}};
    (void)setitimer(ITIMER_REAL, &never, NULL);
    (void)fesetenv(FE_DFL_ENV);
}

int main(int argc, char **argv) {
    const uint64_t signalling = UINT64_C(0x7ff4000000000001);
    double u[N] = {1e300, -1e300, 1e-300, 1e-42, 0.1, -0.1, 3.4028235677973366e38, 0, 0, 1 + 0x1p-24, 16777217, 0};
    int64_t shape[] = {N}, half[] = {N / 2}, first[] = {0}, second[] = {N / 2}, simulation;
    int32_t whole[2] = {INT32_MAX, INT32_MIN};
    int64_t two[] = {2};
    memcpy(&u[7], &(double){__builtin_nan("")}, sizeof *u);
    memcpy(&u[8], &signalling, sizeof *u);
    u[N - 1] = __builtin_inf();
    const char *locale = setlocale(LC_ALL, "");
    (void)fprintf(stderr, "locale %s, 1.5 is %.1f\n", locale ? locale : "none", 1.5);
    if (argc > 1 && !strcmp(argv[1], "closed")) {
        (void)close(0);
        (void)close(1);
    }
#ifdef CARRIED
    set_all();
    if (KEPT(mpidata_attach())) return 1;
#else
    MPI_Comm group;
    MPI_Init(&argc, &argv);
    set_all();
    if (KEPT(mpidata_init(MPI_COMM_WORLD, &group))) return 1;
#endif
    while (KEPT(mpidata_next(&simulation)) == MPIDATA_SUCCESS) {
        double value = -1;
        must(KEPT(mpidata_param("viscosity", &value)) == MPIDATA_SUCCESS, "no parameter", "mpidata_param");
        memcpy(&u[N - 2], &value, sizeof value);
        for (int step = 0; step < 20; step++) {
            must(!KEPT(mpidata_put("u", u, MPIDATA_FLOAT64, 1, shape)), "status", "put");
            must(!KEPT(mpidata_put_block("w", u, MPIDATA_FLOAT64, 1, half, first)), "status", "put_block");
            must(!KEPT(mpidata_iput("w", u + N / 2, MPIDATA_FLOAT64, 1, half, second)), "status", "iput");
            must(!KEPT(mpidata_put("whole", whole, MPIDATA_INT32, 1, two)), "status", "put");
            must(!KEPT(mpidata_step(step)), "status", "step");
            must(!KEPT(mpidata_wait_for(u)), "status", "wait_for");
        }
        must(!KEPT(mpidata_wait()), "status", "wait");
        if (simulation == 1) must(!KEPT(mpidata_fail("as asked")), "status", "fail");
    }
    must(!KEPT(mpidata_finalize()), "status", "finalize");
    unset_all();
    if (argc > 1 && !strcmp(argv[1], "closed")) {
        printf("to nobody\n");
        (void)fflush(stdout);
    }
    (void)fprintf(stderr, "kept, %s, viscosity %a\n", alarms ? "alarms came" : "no alarm", u[N - 2]);
#ifndef CARRIED
    MPI_Finalize();
#endif
    return 0;
}
