/* Preloaded into a solver: lets a test end it from outside, in the middle of its work, in ways that a signal cannot.
 * At the next step, SIGRTMIN+1 calls exit(3), SIGRTMIN+2 MPI_Abort (abort without MPI), and SIGRTMIN+3 exit(0). */
#define _GNU_SOURCE
#include <dlfcn.h>
#ifndef WITHOUT_MPI
#include <mpi.h>
#endif
#include <signal.h>
#include <stdlib.h>

static volatile sig_atomic_t wanted;

static void take(int number) { wanted = number; }

__attribute__((constructor)) static void install(void) {
    (void)signal(SIGRTMIN + 1, take);
    (void)signal(SIGRTMIN + 2, take);
    (void)signal(SIGRTMIN + 3, take);
}

int mpidata_step(double time) {
    static int (*step)(double);
    if (wanted == SIGRTMIN + 1) exit(3);
    if (wanted == SIGRTMIN + 3) exit(0);
#ifdef WITHOUT_MPI
    if (wanted == SIGRTMIN + 2) abort();
#else
    if (wanted == SIGRTMIN + 2) MPI_Abort(MPI_COMM_WORLD, 4);
#endif
    if (!step) *(void **)&step = dlsym(RTLD_NEXT, "mpidata_step");
    return step(time);
}
