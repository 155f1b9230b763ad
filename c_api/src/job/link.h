/* A communicator of the scheduler and the trainers with groups and loaders: that of the world, or one with a spawned group or
 * loader. In each, rank 0 is the scheduler; then come the trainers, in the world their mates, the groups' ranks, the loaders,
 * the inference ranks and the learners, and in the world the servers. That of a spawned one has only the trainers that lived
 * then. */
#ifndef MPIDATA_LINK_H
#define MPIDATA_LINK_H

#include "wire/plan.h"

typedef struct {
    MPI_Comm comm;
    int first_group, n_groups, first_loader, n_loaders, first_inference, n_inference, first_learner, n_learners, n_ranks;
    int n_mates;
    int n_trainers, *trainers; /* their numbers, in the order of their ranks; NULL: all trainers */
    char *dead;    /* per rank */
    int *newly;    /* ranks whose death the last mpidata_link_deaths has found */
    int n_newly;
} mpidata_link;

int mpidata_link_open_world(mpidata_link *link, MPI_Comm comm, const mpidata_plan *plan);
/* number: which group, loader, inference rank or learner, by its role. trainer_ranks: by trainer; -1: it is not in it. */
int mpidata_link_open_spawned(mpidata_link *link, MPI_Comm comm, int role, int number, const mpidata_plan *plan,
                              const int *trainer_ranks);
void mpidata_link_close(mpidata_link *link); /* leaves the communicator */

/* Group of a rank and its place there; -1 for all others. */
int mpidata_link_group(const mpidata_link *link, const mpidata_plan *plan, int rank, int *rank_in_group);

/* Role of a rank; *number: which trainer, group, loader, inference rank, learner or server, or a mate's trainer. */
int mpidata_link_role(const mpidata_link *link, const mpidata_plan *plan, int rank, int *number);

/* The rank that it would have with all trainers. */
int mpidata_link_planned_rank(const mpidata_link *link, const mpidata_plan *plan, int rank);

/* Rank of a loader, inference rank or learner, or of the first of a group's ranks_per_group ranks; -1: it is not of this link. */
int mpidata_link_leader(const mpidata_link *link, const mpidata_plan *plan, int role, int number);

/* "Solver rank 5 (group 1, its rank 0)": for messages. */
void mpidata_link_who(const mpidata_link *link, const mpidata_plan *plan, int rank, char *text, size_t size);

/* After an error because of a death: find the dead ranks, in newly, n_newly. */
int mpidata_link_deaths(mpidata_link *link);

#endif
