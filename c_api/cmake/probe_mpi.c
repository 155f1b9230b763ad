/* Prints the MPI library's version and the path of its file. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

int main(void) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    Dl_info info;
    if (MPI_Get_library_version(version, &length) != MPI_SUCCESS) return 1;
    /* Not MPI_Init: its address may be that of this program's own jump table. */
    void *symbol = dlsym(RTLD_DEFAULT, "PMPI_Init");
    if (!symbol || !dladdr(symbol, &info)) return 2;
    printf("version=%s\nlibrary=%s\n", version, info.dli_fname);
    return 0;
}
