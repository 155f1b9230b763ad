/* Preloaded into a trainer: kills it before one of the calls by which it joins spawned processes. DIES_JOINING names
 * the rank, the function (`create` or `merge`) and the number of the call: "2 create 3". */
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void reach(const char *function, int count) {
    char wanted[64];
    (void)snprintf(wanted, sizeof wanted, "%s %s %d", getenv("OMPI_COMM_WORLD_RANK"), function, count);
    const char *dies = getenv("DIES_JOINING");
    if (dies && strcmp(dies, wanted) == 0) (void)kill(getpid(), SIGKILL);
}

int MPI_Intercomm_create(MPI_Comm own, int leader, MPI_Comm peer, int other, int tag, MPI_Comm *made) {
    static int count;
    reach("create", ++count);
    return PMPI_Intercomm_create(own, leader, peer, other, tag, made);
}

int MPI_Intercomm_merge(MPI_Comm between, int high, MPI_Comm *made) {
    static int count;
    reach("merge", ++count);
    return PMPI_Intercomm_merge(between, high, made);
}
