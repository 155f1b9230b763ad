#include "job/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/failure.h"

static int open_link(mpidata_link *link) {
    MPIDATA_TRY_MPI(MPI_Comm_size(link->comm, &link->n_ranks));
    link->dead = calloc((size_t)link->n_ranks, 1);
    link->newly = calloc((size_t)link->n_ranks, sizeof *link->newly);
    if (link->dead && link->newly) return MPIDATA_SUCCESS;
    mpidata_link_close(link);
    return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for %d ranks.", link->n_ranks);
}

int mpidata_link_open_world(mpidata_link *link, MPI_Comm comm, const mpidata_plan *plan) {
    *link = (mpidata_link){
        .comm = comm,
        .n_groups = mpidata_plan_world_groups(plan),
        .n_loaders = mpidata_plan_world_loaders(plan),
        .n_inference = mpidata_plan_world_inference(plan),
        .n_learners = mpidata_plan_world_learners(plan),
        .n_trainers = plan->trainers,
        .n_mates = mpidata_plan_mates(plan),
    };
    return open_link(link);
}

int mpidata_link_open_spawned(mpidata_link *link, MPI_Comm comm, int role, int number, const mpidata_plan *plan,
                              const int *trainer_ranks) {
    *link = (mpidata_link){.comm = comm, .first_group = number, .first_loader = number, .first_inference = number, .first_learner = number};
    *(role == MPIDATA_ROLE_LOADER      ? &link->n_loaders
      : role == MPIDATA_ROLE_INFERENCE ? &link->n_inference
      : role == MPIDATA_ROLE_LEARNER   ? &link->n_learners
                                       : &link->n_groups) = 1;
    link->trainers = malloc((size_t)plan->trainers * sizeof *link->trainers);
    if (!link->trainers) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for %d trainers.", plan->trainers);
    for (int t = 0; t < plan->trainers; t++)
        if (trainer_ranks[t] >= 0) link->trainers[link->n_trainers++] = t;
    return open_link(link);
}

void mpidata_link_close(mpidata_link *link) {
    free(link->dead);
    free(link->newly);
    free(link->trainers);
    link->trainers = NULL;
    link->dead = NULL;
    link->newly = NULL;
}

static int first_solver_rank(const mpidata_link *link) { return 1 + link->n_trainers + link->n_mates; }

int mpidata_link_group(const mpidata_link *link, const mpidata_plan *plan, int rank, int *rank_in_group) {
    int solver = rank - first_solver_rank(link);
    *rank_in_group = 0;
    if (solver < 0 || solver >= link->n_groups * plan->ranks_per_group) return -1;
    *rank_in_group = solver % plan->ranks_per_group;
    return link->first_group + solver / plan->ranks_per_group;
}

static int first_loader_rank(const mpidata_link *link, const mpidata_plan *plan) {
    return first_solver_rank(link) + link->n_groups * plan->ranks_per_group;
}

int mpidata_link_role(const mpidata_link *link, const mpidata_plan *plan, int rank, int *number) {
    int rank_in_group, loader = rank - first_loader_rank(link, plan);
    *number = mpidata_link_group(link, plan, rank, &rank_in_group);
    if (*number >= 0) return MPIDATA_ROLE_SOLVER;
    if (loader >= link->n_loaders) {
        const int inference = loader - link->n_loaders, learner = inference - link->n_inference;
        *number = learner < 0                   ? link->first_inference + inference
                  : learner < link->n_learners ? link->first_learner + learner
                                               : learner - link->n_learners;
        return learner < 0 ? MPIDATA_ROLE_INFERENCE : learner < link->n_learners ? MPIDATA_ROLE_LEARNER : MPIDATA_ROLE_SERVER;
    }
    const int mate = rank - 1 - link->n_trainers;
    if (loader < 0 && mate >= 0) {
        *number = mate / (plan->ranks_per_replica - 1);
        return MPIDATA_ROLE_MATE;
    }
    *number = loader >= 0 ? link->first_loader + loader : rank <= 0 ? 0 : link->trainers ? link->trainers[rank - 1] : rank - 1;
    return loader >= 0 ? MPIDATA_ROLE_LOADER : rank > 0 ? MPIDATA_ROLE_TRAINER : MPIDATA_ROLE_SCHEDULER;
}

int mpidata_link_leader(const mpidata_link *link, const mpidata_plan *plan, int role, int number) {
    const int loader = role == MPIDATA_ROLE_LOADER;
    if (role == MPIDATA_ROLE_INFERENCE) {
        const int place = number - link->first_inference;
        return place >= 0 && place < link->n_inference ? first_loader_rank(link, plan) + link->n_loaders + place : -1;
    }
    if (role == MPIDATA_ROLE_LEARNER) {
        const int place = number - link->first_learner;
        const int first = first_loader_rank(link, plan) + link->n_loaders + link->n_inference;
        return place >= 0 && place < link->n_learners ? first + place : -1;
    }
    int i = number - (loader ? link->first_loader : link->first_group);
    if (i < 0 || i >= (loader ? link->n_loaders : link->n_groups)) return -1;
    return loader ? first_loader_rank(link, plan) + i : first_solver_rank(link) + i * plan->ranks_per_group;
}

int mpidata_link_planned_rank(const mpidata_link *link, const mpidata_plan *plan, int rank) {
    int number;
    const int trainer = mpidata_link_role(link, plan, rank, &number) == MPIDATA_ROLE_TRAINER;
    return trainer ? 1 + number : rank > 0 ? rank + plan->trainers - link->n_trainers : rank;
}

void mpidata_link_who(const mpidata_link *link, const mpidata_plan *plan, int rank, char *text, size_t size) {
    int rank_in_group, number, role = mpidata_link_role(link, plan, rank, &number);
    (void)mpidata_link_group(link, plan, rank, &rank_in_group);
    if (role == MPIDATA_ROLE_SCHEDULER)
        (void)snprintf(text, size, "The scheduler (rank 0)");
    else if (role == MPIDATA_ROLE_TRAINER)
        (void)snprintf(text, size, "Trainer %d (rank %d)", number, rank);
    else if (role == MPIDATA_ROLE_MATE)
        (void)snprintf(text, size, "A mate of trainer %d (rank %d)", number, rank);
    else if (role == MPIDATA_ROLE_SERVER)
        (void)snprintf(text, size, "Server %d (rank %d)", number, rank);
    else if (role == MPIDATA_ROLE_INFERENCE && number < mpidata_plan_world_inference(plan))
        (void)snprintf(text, size, "Inference rank %d (rank %d)", number, rank);
    else if (role == MPIDATA_ROLE_INFERENCE)
        (void)snprintf(text, size, "The spawned inference rank %d", number);
    else if (role == MPIDATA_ROLE_LEARNER && number < mpidata_plan_world_learners(plan))
        (void)snprintf(text, size, "Learner %d (rank %d)", number, rank);
    else if (role == MPIDATA_ROLE_LEARNER)
        (void)snprintf(text, size, "The spawned learner %d", number);
    else if (role == MPIDATA_ROLE_LOADER && number < mpidata_plan_world_loaders(plan))
        (void)snprintf(text, size, "Loader %d (rank %d)", number, rank);
    else if (role == MPIDATA_ROLE_LOADER)
        (void)snprintf(text, size, "The spawned loader %d", number);
    else if (number < mpidata_plan_world_groups(plan))
        (void)snprintf(text, size, "Solver rank %d (group %d, its rank %d)", rank, number, rank_in_group);
    else
        (void)snprintf(text, size, "Solver rank %d of the spawned group %d", rank_in_group, number);
}

int mpidata_link_deaths(mpidata_link *link) {
    return mpidata_acknowledge_failures(link->comm, link->dead, link->newly, &link->n_newly);
}
