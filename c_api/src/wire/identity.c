#include "wire/identity.h"

#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

#ifndef MPIDATA_BUILT_WITH
#define MPIDATA_BUILT_WITH "" /* a build without CMake: nothing to compare with */
#endif

#define TEXT(number) #number
#define DOTTED(major, minor, patch) TEXT(major) "." TEXT(minor) "." TEXT(patch)

static char built_with[MPIDATA_MPI_NAME_MAX];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void shorten(void) { mpidata_mpi_name(MPIDATA_BUILT_WITH, built_with, sizeof built_with); }

const char *mpidata_built_with(void) {
    (void)pthread_once(&once, shorten);
    return built_with;
}

const char *mpidata_version(void) { return DOTTED(MPIDATA_VERSION_MAJOR, MPIDATA_VERSION_MINOR, MPIDATA_VERSION_PATCH); }

void mpidata_mpi_name(const char *text, char *name, size_t size) {
    size_t used = 0;
    for (; *text && *text != '\n' && *text != ',' && used + 1 < size; text++) {
        int blank = strchr(" \t\v\f\r", *text) != NULL;
        if (!blank || (used && name[used - 1] != ' ')) name[used++] = blank ? ' ' : *text;
    }
    if (used && name[used - 1] == ' ') used--;
    if (size) name[used] = '\0';
}

/* The length up to the end of the first number. */
static size_t significant(const char *name) {
    size_t n = strcspn(name, "0123456789");
    return n + strspn(name + n, "0123456789");
}

int mpidata_same_mpi(const char *one, const char *other) {
    size_t n = significant(one);
    return n == significant(other) && memcmp(one, other, n) == 0;
}

/* Compare with the MPI of the job, which mpidata-rank sets: a program may be linked to a libmpidata of its own. */
static int check_job(void) {
    const char *job = getenv("MPIDATA_MPI");
    char name[MPIDATA_MPI_NAME_MAX];
    if (!job || !*job || mpidata_same_mpi(job, mpidata_built_with())) return MPIDATA_SUCCESS;
    mpidata_mpi_name(job, name, sizeof name);
    return mpidata_error(MPIDATA_ERR_JOB,
                         "The job runs on %s, but this program's libmpidata was built with %s. Build it with the mpicc that "
                         "`mpidata config --mpicc` prints where the job is started.",
                         name, mpidata_built_with());
}

int mpidata_check_identity(void) {
    /* More room than any MPI needs: the constant in the headers may be that of the wrong MPI. */
    char text[16384] = "", name[MPIDATA_MPI_NAME_MAX];
    int length = 0;
    if (!*mpidata_built_with()) return MPIDATA_SUCCESS;
    MPIDATA_TRY_MPI(MPI_Get_library_version(text, &length));
    mpidata_mpi_name(text, name, sizeof name);
    if (mpidata_same_mpi(name, mpidata_built_with())) return check_job();
    return mpidata_error(MPIDATA_ERR_JOB,
                         "This program runs on %s, but its libmpidata was built with %s. Compile and link it with the mpicc "
                         "that `mpidata config --mpicc` prints, or reinstall mpidata with MPICC set to the mpicc of %s.",
                         name, mpidata_built_with(), name);
}

/* When the library is loaded: with the wrong launcher, MPI_Init may end the program with an error of its own. */
__attribute__((constructor)) static void speak_up(void) {
    const char *run = getenv("MPIDATA_RUN");
    if (run && *run && mpidata_check_identity()) (void)fprintf(stderr, "mpidata: %s\n", mpidata_last_error());
}
