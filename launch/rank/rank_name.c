/* Number and name of this rank. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "rank.h"

long read_launcher(void)
{
    const char *step = getenv("SLURM_STEP_ID"), *space = getenv("PMIX_NAMESPACE");
    const int slurm_pmix = step && space && strncmp(space, "slurm.", 6) == 0;
    if (getenv("OMPI_COMM_WORLD_RANK")) {
        me.rank = number(getenv("OMPI_COMM_WORLD_RANK"));
        return number(getenv("OMPI_COMM_WORLD_SIZE"));
    }
    if (getenv("PMIX_RANK")) {
        me.rank = number(getenv("PMIX_RANK"));
        return slurm_pmix ? number(getenv("SLURM_STEP_NUM_TASKS")) : -1;
    }
    if (getenv("PMI_RANK")) {
        me.rank = number(getenv("PMI_RANK"));
        return number(getenv("PMI_SIZE"));
    }
    me.rank = step ? number(getenv("SLURM_PROCID")) : -1; /* a batch script also has SLURM_PROCID, but no step */
    return step ? number(getenv("SLURM_STEP_NUM_TASKS")) : -1;
}

static void find_place_in_group(const mpidata_plan *plan, long size)
{
    const int solver = me.role == MPIDATA_ROLE_SOLVER, ranks = solver ? plan->ranks_per_group : 1;
    const char *what = solver ? "group" : me.role == MPIDATA_ROLE_LOADER ? "loader" : me.role == MPIDATA_ROLE_LEARNER ? "learner" : "inference rank";
    if ((size >= 0 && size != ranks) || me.rank >= ranks)
        refuse("The spawned %s %ld has %ld ranks, but was planned with %d. %s/" MPIDATA_RUN_PLAN ". Start the job again.", what,
               me.index, size, ranks, me.run_folder);
    me.rank_in_group = me.rank;
}

void find_role(const mpidata_plan *plan, long size)
{
    if (me.spawned) {
        find_place_in_group(plan, size);
        return;
    }
    if ((size >= 0 && size != plan->world) || me.rank >= plan->world)
        refuse("The launcher started %ld ranks, but the job has %d. %s/" MPIDATA_RUN_PLAN ". Start it with -n %d, and with the mpirun of"
               " the MPI that mpidata is built with.", size, plan->world, me.run_folder, plan->world);
    int index, rank_in_group;
    me.role = mpidata_plan_role(plan, (int)me.rank, &index, &rank_in_group);
    me.index = index;
    me.rank_in_group = rank_in_group;
}

/* MPICH that is not built for PMIx ends such a program in MPI_Init, with an unhelpful message. */
char *foreign_launcher(int status)
{
    if (!getenv("PMIX_RANK") || getenv("PMI_RANK")) return NULL;
    if (!*MPIDATA_BUILT_WITH || strncmp(MPIDATA_BUILT_WITH, "Open MPI", 8) == 0) return NULL;
    return print("The program of %s ended with exit status %d before it had joined. It was started through PMIx, which the"
                 " MPI of libmpidata, %s, may not understand. Start the job with the mpirun of that MPI, under Slurm with"
                 " srun --mpi=pmi2, or let `mpidata run` choose it.", rank_name(), status, MPIDATA_BUILT_WITH);
}

int may_be_lost(const mpidata_plan *plan)
{
    return is_replaced() || (me.role == MPIDATA_ROLE_TRAINER && plan->trainers_at_least);
}

int is_replaced(void)
{
    return me.role >= MPIDATA_ROLE_SOLVER && me.role != MPIDATA_ROLE_SERVER && me.role != MPIDATA_ROLE_MATE;
}

char *rank_name(void)
{
    if (me.role == MPIDATA_ROLE_LOADER)
        return me.spawned ? print("loader %ld, which was spawned", me.index) : print("rank %ld (loader %ld)", me.rank, me.index);
    if (me.role == MPIDATA_ROLE_MATE) return print("rank %ld (mate %ld of trainer %ld)", me.rank, me.rank_in_group, me.index);
    if (me.role == MPIDATA_ROLE_SERVER) return print("rank %ld (server %ld)", me.rank, me.index);
    if (me.role == MPIDATA_ROLE_INFERENCE)
        return me.spawned ? print("inference rank %ld, which was spawned", me.index) : print("rank %ld (inference rank %ld)", me.rank, me.index);
    if (me.role == MPIDATA_ROLE_LEARNER)
        return me.spawned ? print("learner %ld, which was spawned", me.index) : print("rank %ld (learner %ld)", me.rank, me.index);
    if (me.spawned) return print("solver %ld of group %ld, which was spawned", me.rank_in_group, me.index);
    if (me.role == MPIDATA_ROLE_SCHEDULER) return print("rank %ld (the scheduler)", me.rank);
    if (me.role == MPIDATA_ROLE_TRAINER) return print("rank %ld (trainer %ld)", me.rank, me.index);
    return print("rank %ld (a solver of group %ld)", me.rank, me.index);
}

char *file_name(int is_log)
{
    if (me.spawned && me.role == MPIDATA_ROLE_LOADER) return print(is_log ? "loader-%04ld.log" : "loader-%04ld", me.index);
    if (me.spawned && me.role == MPIDATA_ROLE_INFERENCE) return print(is_log ? "inference-%04ld.log" : "inference-%04ld", me.index);
    if (me.spawned && me.role == MPIDATA_ROLE_LEARNER) return print(is_log ? "learner-%04ld.log" : "learner-%04ld", me.index);
    if (me.spawned) return print(is_log ? "group-%04ld-solver-%ld.log" : "group-%04ld-%ld", me.index, me.rank_in_group);
    if (!is_log) return print("rank-%04ld", me.rank);
    if (me.role == MPIDATA_ROLE_SCHEDULER) return print("rank-%04ld-scheduler.log", me.rank);
    if (me.role == MPIDATA_ROLE_TRAINER) return print("rank-%04ld-trainer-%ld.log", me.rank, me.index);
    if (me.role == MPIDATA_ROLE_LOADER) return print("rank-%04ld-loader-%ld.log", me.rank, me.index);
    if (me.role == MPIDATA_ROLE_MATE) return print("rank-%04ld-mate-%ld-%ld.log", me.rank, me.index, me.rank_in_group);
    if (me.role == MPIDATA_ROLE_SERVER) return print("rank-%04ld-server-%ld.log", me.rank, me.index);
    if (me.role == MPIDATA_ROLE_INFERENCE) return print("rank-%04ld-inference-%ld.log", me.rank, me.index);
    if (me.role == MPIDATA_ROLE_LEARNER) return print("rank-%04ld-learner-%ld.log", me.rank, me.index);
    return print("rank-%04ld-solver-%ld-%ld.log", me.rank, me.index, me.rank_in_group);
}
