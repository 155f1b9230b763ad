#include "job/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/failure.h"

int mpidata_link_open(mpidata_link *link, MPI_Comm comm, int first_group, int n_groups) {
    memset(link, 0, sizeof *link);
    link->comm = comm;
    link->first_group = first_group;
    link->n_groups = n_groups;
    MPIDATA_TRY_MPI(MPI_Comm_size(comm, &link->n_ranks));
    link->dead = calloc((size_t)link->n_ranks, 1);
    link->newly = calloc((size_t)link->n_ranks, sizeof *link->newly);
    if (link->dead && link->newly) return MPIDATA_SUCCESS;
    mpidata_link_close(link);
    return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for %d ranks.", link->n_ranks);
}

void mpidata_link_close(mpidata_link *link) {
    free(link->dead);
    free(link->newly);
    link->dead = NULL;
    link->newly = NULL;
}

int mpidata_link_group(const mpidata_link *link, const mpidata_plan *plan, int rank, int *rank_in_group) {
    int solver = rank - 1 - plan->trainers;
    *rank_in_group = 0;
    if (solver < 0 || solver >= link->n_groups * plan->ranks_per_group) return -1;
    *rank_in_group = solver % plan->ranks_per_group;
    return link->first_group + solver / plan->ranks_per_group;
}

int mpidata_link_leader(const mpidata_link *link, const mpidata_plan *plan, int group) {
    if (group < link->first_group || group >= link->first_group + link->n_groups) return -1;
    return 1 + plan->trainers + (group - link->first_group) * plan->ranks_per_group;
}

void mpidata_link_who(const mpidata_link *link, const mpidata_plan *plan, int rank, char *text, size_t size) {
    int rank_in_group, group = mpidata_link_group(link, plan, rank, &rank_in_group);
    if (rank == 0)
        (void)snprintf(text, size, "The scheduler (rank 0)");
    else if (group < 0)
        (void)snprintf(text, size, "Trainer %d (rank %d)", rank - 1, rank);
    else if (group < mpidata_plan_world_groups(plan))
        (void)snprintf(text, size, "Solver rank %d (group %d, its rank %d)", rank, group, rank_in_group);
    else
        (void)snprintf(text, size, "Solver rank %d of the spawned group %d", rank_in_group, group);
}

int mpidata_link_deaths(mpidata_link *link) {
    return mpidata_acknowledge_failures(link->comm, link->dead, link->newly, &link->n_newly);
}
