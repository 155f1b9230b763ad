#include <string.h>

#include "check.h"
#include "example_plan.h"
#include "job/link.h"

static mpidata_plan plan; /* 2 trainers, 2 groups of 2 */

static int group_of(const mpidata_link *link, int rank, int expected_in_group) {
    int rank_in_group, group = mpidata_link_group(link, &plan, rank, &rank_in_group);
    CHECK(rank_in_group == expected_in_group);
    return group;
}

static int leader(const mpidata_link *link, int group) {
    return mpidata_link_leader(link, &plan, MPIDATA_ROLE_SOLVER, group);
}

static int names(const mpidata_link *link, int rank, const char *expected) {
    char text[128];
    mpidata_link_who(link, &plan, rank, text, sizeof text);
    return strcmp(text, expected) == 0;
}

int main(void) {
    const mpidata_link world = {.first_group = 0, .n_groups = 2, .n_trainers = 2, .n_ranks = 7};
    const mpidata_link spawned = {.first_group = 5, .n_groups = 1, .n_trainers = 2, .n_ranks = 5};
    CHECK(mpidata_plan_parse(example_plan, &plan) == MPIDATA_SUCCESS);

    for (int rank = 0; rank < 3; rank++) {
        CHECK(group_of(&world, rank, 0) == -1);
        CHECK(group_of(&spawned, rank, 0) == -1);
    }
    CHECK(group_of(&world, 3, 0) == 0 && group_of(&world, 4, 1) == 0);
    CHECK(group_of(&world, 5, 0) == 1 && group_of(&world, 6, 1) == 1);
    CHECK(group_of(&world, 7, 0) == -1);
    CHECK(group_of(&spawned, 3, 0) == 5 && group_of(&spawned, 4, 1) == 5);
    CHECK(group_of(&spawned, 5, 0) == -1);

    CHECK(leader(&world, 0) == 3 && leader(&world, 1) == 5);
    CHECK(leader(&world, -1) == -1 && leader(&world, 2) == -1);
    CHECK(leader(&spawned, 5) == 3);
    CHECK(leader(&spawned, 4) == -1 && leader(&spawned, 6) == -1);

    const mpidata_link with_loaders = {.n_groups = 2, .n_loaders = 3, .n_trainers = 2, .n_ranks = 10};
    const mpidata_link loader = {.first_group = 4, .first_loader = 4, .n_loaders = 1, .n_trainers = 2, .n_ranks = 4};
    int number;
    CHECK(mpidata_link_role(&with_loaders, &plan, 0, &number) == MPIDATA_ROLE_SCHEDULER);
    CHECK(mpidata_link_role(&with_loaders, &plan, 2, &number) == MPIDATA_ROLE_TRAINER && number == 1);
    CHECK(mpidata_link_role(&with_loaders, &plan, 6, &number) == MPIDATA_ROLE_SOLVER && number == 1);
    CHECK(mpidata_link_role(&with_loaders, &plan, 9, &number) == MPIDATA_ROLE_LOADER && number == 2);
    CHECK(mpidata_link_role(&loader, &plan, 3, &number) == MPIDATA_ROLE_LOADER && number == 4);
    CHECK(group_of(&with_loaders, 7, 0) == -1 && group_of(&loader, 3, 0) == -1);
    CHECK(mpidata_link_leader(&with_loaders, &plan, MPIDATA_ROLE_LOADER, 2) == 9);
    CHECK(mpidata_link_leader(&with_loaders, &plan, MPIDATA_ROLE_LOADER, 3) == -1);
    CHECK(mpidata_link_leader(&loader, &plan, MPIDATA_ROLE_LOADER, 4) == 3);
    CHECK(mpidata_link_leader(&loader, &plan, MPIDATA_ROLE_SOLVER, 4) == -1);
    CHECK(mpidata_link_role(&with_loaders, &plan, 11, &number) == MPIDATA_ROLE_SERVER && number == 1);
    CHECK(names(&with_loaders, 11, "Server 1 (rank 11)"));
    CHECK(names(&with_loaders, 9, "The spawned loader 2") && names(&loader, 3, "The spawned loader 4"));

    const mpidata_link with_inference = {.n_groups = 2, .n_loaders = 3, .n_trainers = 2, .n_inference = 2, .n_ranks = 13};
    const mpidata_link inference = {.first_inference = 6, .n_inference = 1, .n_trainers = 2, .n_ranks = 4};
    CHECK(mpidata_link_role(&with_inference, &plan, 9, &number) == MPIDATA_ROLE_LOADER && number == 2);
    CHECK(mpidata_link_role(&with_inference, &plan, 11, &number) == MPIDATA_ROLE_INFERENCE && number == 1);
    CHECK(mpidata_link_role(&with_inference, &plan, 12, &number) == MPIDATA_ROLE_SERVER && number == 0);
    CHECK(mpidata_link_leader(&with_inference, &plan, MPIDATA_ROLE_INFERENCE, 1) == 11);
    CHECK(mpidata_link_leader(&with_inference, &plan, MPIDATA_ROLE_INFERENCE, 2) == -1);
    CHECK(mpidata_link_role(&inference, &plan, 3, &number) == MPIDATA_ROLE_INFERENCE && number == 6);
    CHECK(mpidata_link_leader(&inference, &plan, MPIDATA_ROLE_INFERENCE, 6) == 3);
    CHECK(mpidata_link_leader(&inference, &plan, MPIDATA_ROLE_INFERENCE, 0) == -1);
    CHECK(names(&inference, 3, "The spawned inference rank 6"));

    const mpidata_link with_mates = {.n_groups = 2, .n_loaders = 1, .n_trainers = 2, .n_mates = 4, .n_ranks = 14};
    plan.ranks_per_replica = 3;
    for (int mate = 0; mate < 4; mate++) {
        CHECK(mpidata_link_role(&with_mates, &plan, 3 + mate, &number) == MPIDATA_ROLE_MATE && number == mate / 2);
        CHECK(group_of(&with_mates, 3 + mate, 0) == -1);
    }
    CHECK(mpidata_link_role(&with_mates, &plan, 2, &number) == MPIDATA_ROLE_TRAINER && number == 1);
    CHECK(mpidata_link_role(&with_mates, &plan, 7, &number) == MPIDATA_ROLE_SOLVER && number == 0);
    CHECK(mpidata_link_role(&with_mates, &plan, 11, &number) == MPIDATA_ROLE_LOADER && number == 0);
    CHECK(mpidata_link_role(&with_mates, &plan, 12, &number) == MPIDATA_ROLE_SERVER && number == 0);
    CHECK(leader(&with_mates, 1) == 9 && mpidata_link_leader(&with_mates, &plan, MPIDATA_ROLE_LOADER, 0) == 11);
    CHECK(names(&with_mates, 6, "A mate of trainer 1 (rank 6)"));
    plan.ranks_per_replica = 1;

    CHECK(names(&world, 0, "The scheduler (rank 0)") && names(&spawned, 0, "The scheduler (rank 0)"));
    CHECK(names(&world, 2, "Trainer 1 (rank 2)") && names(&spawned, 2, "Trainer 1 (rank 2)"));
    CHECK(names(&world, 6, "Solver rank 6 (group 1, its rank 1)"));
    CHECK(names(&spawned, 4, "Solver rank 1 of the spawned group 5"));

    int second = 1;
    const mpidata_link without = {.first_group = 5, .n_groups = 1, .n_trainers = 1, .trainers = &second, .n_ranks = 4};
    CHECK(mpidata_link_role(&without, &plan, 1, &number) == MPIDATA_ROLE_TRAINER && number == 1);
    CHECK(group_of(&without, 1, 0) == -1 && group_of(&without, 2, 0) == 5 && group_of(&without, 3, 1) == 5);
    CHECK(leader(&without, 5) == 2 && names(&without, 3, "Solver rank 1 of the spawned group 5"));
    CHECK(mpidata_link_planned_rank(&without, &plan, 0) == 0 && mpidata_link_planned_rank(&without, &plan, 1) == 2);
    CHECK(mpidata_link_planned_rank(&without, &plan, 2) == 3 && mpidata_link_planned_rank(&world, &plan, 6) == 6);
    mpidata_plan_free(&plan);
    return 0;
}
