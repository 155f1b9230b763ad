/* Preloaded into the solvers of a job that outlives their deaths: MPI_Abort ends the calling process, not the job.
 *
 * Open MPI ends a job by PMIx_Abort, whether MPI_Abort was called, from any language, or an error within MPI was fatal.
 * Here, in a solver that has joined, it leaves its code in the page of pulse.h and dies of SIGKILL, the only end that MPI
 * reports to the other ranks. Before it has joined, no rank could replace it: the true PMIx_Abort is called. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/beat.h"
#include "base/deadlines.h"

typedef int (*abort_call)(int, const char *, void *, size_t);
#define EXPORTED __attribute__((visibility("default")))

EXPORTED int PMIx_Abort(int code, const char *text, void *processes, size_t count);

/* Before the program can close the page's descriptor. */
__attribute__((constructor)) static void find_page(void) { (void)mpidata_pulse_page(); }

static int abort_the_job(int code, const char *text, void *processes, size_t count) {
    void *found = dlsym(RTLD_NEXT, "PMIx_Abort"), *pmix;
    abort_call call;
    /* If MPI was loaded by dlopen, RTLD_NEXT does not see it. */
    if (!found && (pmix = dlopen("libpmix.so.2", RTLD_LAZY | RTLD_NOLOAD))) found = dlsym(pmix, "PMIx_Abort");
    if (!found) return -1;
    memcpy(&call, &found, sizeof call);
    return call(code, text, processes, count);
}

/* Flush the program's last output, which often has the cause. mpidata-rank ends the program if this does not return, because
 * the error occurred while printing. */
static void flush_all(void) {
    void (*flush)(int *);
    void *fortran = dlsym(RTLD_DEFAULT, "_gfortran_flush_i4");
    (void)fflush(NULL);
    memcpy(&flush, &fortran, sizeof flush);
    if (fortran) flush(NULL);
}

int PMIx_Abort(int code, const char *text, void *processes, size_t count) {
    mpidata_pulse *page = mpidata_pulse_page();
    if (page) atomic_store(&page->abort_code, code);
    mpidata_tell(MPIDATA_PULSE_ABORTED);
    if (!page || !(atomic_load(&page->flags) & MPIDATA_PULSE_JOINED)) return abort_the_job(code, text, processes, count);
    flush_all();
    (void)nanosleep(&(struct timespec){.tv_nsec = MPIDATA_PMIX_SENDS_MS * 1000000L}, NULL);
    for (;;) (void)kill(getpid(), SIGKILL);
}
