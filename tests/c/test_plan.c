#include <string.h>

#include "check.h"
#include "example_plan.h"
#include "wire/plan.h"

static void refuse(const char *text) {
    mpidata_plan plan;
    CHECK(mpidata_plan_parse(text, &plan) == MPIDATA_ERR_JOB);
    CHECK(plan.fields == NULL && plan.parameters == NULL);
}

/* Counts whose product overflows an int; modulo 2^32 the first would be valid. */
static void refuse_counts(const char *world, const char *trainers, const char *groups, const char *ranks_per_group) {
    char text[512];
    (void)snprintf(text, sizeof text,
                   "mpidata-plan 1\nrun /run\nfolder /folder\nworld %s\ntrainers %s\ngroups %s\nranks_per_group %s\n"
                   "in_flight 1\nsimulations 1\ncapacity 1\nfield u float32 0\n",
                   world, trainers, groups, ranks_per_group);
    refuse(text);
}

static void replace(const char *from, const char *to) {
    static char text[4096];
    const char *place = strstr(example_plan, from);
    CHECK(place);
    (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(place - example_plan), example_plan, to, place + strlen(from));
    refuse(text);
}

/* Prints what tests/unit/run/test_plan_readers.py compares: the error for the plan in a file, or its ranks' places. */
static int tell(const char *path) {
    static char text[65536];
    mpidata_plan plan;
    FILE *file = fopen(path, "r");
    CHECK(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    (void)fclose(file);
    if (mpidata_plan_parse(text, &plan)) {
        (void)puts(mpidata_last_error());
        return 1;
    }
    for (int rank = 0; rank < plan.world; rank++) {
        int index, rank_in_group, role = mpidata_plan_role(&plan, rank, &index, &rank_in_group);
        (void)printf("%s %d %d\n", mpidata_role_name(role), index, rank_in_group);
    }
    mpidata_plan_free(&plan);
    return 0;
}

static const char *with_loaders(int world, const char *rest, const char *loaders) {
    static char text[4096];
    (void)snprintf(text, sizeof text, "mpidata-plan 1\nrun /run\nfolder /folder\nworld %d\n%s%s", world, rest, loaders);
    return text;
}

/* The ranks of loaders come last, with or without groups; only servers follow them. */
static void try_loaders(void) {
    static const char no_groups[] = "trainers 1\ngroups 0\nranks_per_group 1\nin_flight 1\nsimulations 0\ncapacity 1\n";
    const char *groups = strstr(example_plan, "trainers 2");
    mpidata_plan plan;
    int index, rank_in_group;
    CHECK(mpidata_plan_parse(with_loaders(10, groups, example_loaders), &plan) == MPIDATA_SUCCESS);
    CHECK(plan.loaders == 2 && plan.loader_timeout_s == 60.0 && plan.loader_start_timeout_s == 600.0);
    CHECK(mpidata_plan_role(&plan, 6, &index, &rank_in_group) == MPIDATA_ROLE_SOLVER && index == 1 && rank_in_group == 1);
    for (int loader = 0; loader < 3; loader++)
        CHECK(mpidata_plan_role(&plan, 7 + loader, &index, &rank_in_group) == MPIDATA_ROLE_LOADER && index == loader);
    CHECK(mpidata_plan_world_loaders(&plan) == 3 && !strcmp(plan.arguments[MPIDATA_ROLE_LOADER][0], "python"));
    mpidata_plan_free(&plan);
    CHECK(mpidata_plan_parse(with_loaders(5, no_groups, example_loaders), &plan) == MPIDATA_SUCCESS);
    CHECK(mpidata_plan_role(&plan, 2, &index, &rank_in_group) == MPIDATA_ROLE_LOADER && index == 0 && !plan.n_fields);
    mpidata_plan_free(&plan);
    char servers[1024];
    (void)snprintf(servers, sizeof servers, "servers 2\n%s", example_loaders);
    CHECK(mpidata_plan_parse(with_loaders(12, groups, servers), &plan) == MPIDATA_SUCCESS);
    CHECK(mpidata_plan_role(&plan, 9, &index, &rank_in_group) == MPIDATA_ROLE_LOADER && index == 2);
    CHECK(mpidata_plan_role(&plan, 11, &index, &rank_in_group) == MPIDATA_ROLE_SERVER && index == 1);
    mpidata_plan_free(&plan);
    char inference[2048];
    (void)snprintf(inference, sizeof inference, "inference 1\ninference_spares 1\n%s", servers);
    refuse(with_loaders(14, groups, inference));
    (void)snprintf(inference, sizeof inference,
                   "inference 1\ninference_spares 1\ninference_timeout_s 5\ninference_start_timeout_s 6\n%s", servers);
    CHECK(mpidata_plan_parse(with_loaders(14, groups, inference), &plan) == MPIDATA_SUCCESS);
    CHECK(mpidata_plan_role(&plan, 9, &index, &rank_in_group) == MPIDATA_ROLE_LOADER && index == 2);
    CHECK(mpidata_plan_role(&plan, 11, &index, &rank_in_group) == MPIDATA_ROLE_INFERENCE && index == 1);
    CHECK(mpidata_plan_role(&plan, 12, &index, &rank_in_group) == MPIDATA_ROLE_SERVER && index == 0);
    mpidata_plan_free(&plan);
    refuse(with_loaders(12, groups, inference));
    refuse(with_loaders(10, groups, servers));
    refuse(with_loaders(9, groups, example_loaders));
    refuse(with_loaders(2, no_groups, ""));
    refuse(with_loaders(3, no_groups, "loaders 1\nloader_timeout_s 60\n"));
}

/* The steps of a dead trainer are distributed among the others, which keep their own. */
static void try_lost_trainers(void) {
    mpidata_plan five = {.trainers = 5, .samples_run = 1};
    int before[400], counts[5] = {0};
    for (int step = 0; step < 400; step++) before[step] = mpidata_plan_trainer(&five, 7, step);
    for (int n = 0; n < 4; n++) {
        const int lost = (int[]){1, 4, 0, 3}[n];
        CHECK(mpidata_plan_trains(&five, lost) && !mpidata_plan_change(&five, lost, 0) && !mpidata_plan_trains(&five, lost));
        memset(counts, 0, sizeof counts);
        for (int step = 0; step < 400; step++) {
            const int now = mpidata_plan_trainer(&five, 7, step);
            CHECK(mpidata_plan_trains(&five, now) && (before[step] == lost || now == before[step]));
            before[step] = now;
            counts[now]++;
        }
        for (int t = 0; t < 5; t++)
            if (mpidata_plan_trains(&five, t)) CHECK(counts[t] >= 400 / (4 - n) - 6 && counts[t] <= 400 / (4 - n) + 6);
    }
    CHECK(counts[2] == 400);
    mpidata_plan_free(&five);
}

/* Validation samples stay if a trainer joins; those of one that leaves go to all others, also to the joined one. */
static void try_validation_when_one_joins(void) {
    mpidata_plan plan = {.trainers = 4, .trainer_spares = 1, .samples_run = 1, .simulations = 2, .validation = 2};
    int before[60], counts[4] = {0};
    for (int step = 0; step < 60; step++) before[step] = mpidata_plan_trainer(&plan, 3, step);
    CHECK(!mpidata_plan_change(&plan, 3, 1));
    for (int step = 0; step < 60; step++) CHECK(mpidata_plan_trainer(&plan, 3, step) == before[step]);
    CHECK(!mpidata_plan_change(&plan, 0, 0));
    for (int step = 0; step < 60; step++) {
        const int now = mpidata_plan_trainer(&plan, 3, step);
        CHECK(now && (now == before[step] || !before[step]));
        counts[now]++;
    }
    CHECK(counts[3] >= 6 && counts[3] <= 7);
    mpidata_plan_free(&plan);
}

/* A joining trainer gets an equal share of the steps of each other one, also of few steps, after any changes. */
static void try_trainers_that_join(void) {
    mpidata_plan five = {.trainers = 5, .trainer_spares = 2, .samples_run = 1, .simulations = 20};
    int before[20][24];
    for (int s = 0; s < 20; s++)
        for (int step = 0; step < 24; step++) before[s][step] = mpidata_plan_trainer(&five, s, step);
    CHECK(mpidata_plan_trains(&five, 2) && !mpidata_plan_trains(&five, 3));
    const int codes[] = {2, mpidata_change_code(3, 1), 4, mpidata_change_code(4, 1), 0};
    for (int i = 0; i < 5; i++) {
        const int one = mpidata_change_trainer(codes[i]), joins = mpidata_change_joins(codes[i]);
        int counts[5] = {0}, n = 0;
        if (i == 2) { /* a waiting spare dies: nothing changes, and it joins no more */
            CHECK(!mpidata_plan_change_by(&five, 4) && !mpidata_plan_trains(&five, 4));
            for (int s = 0; s < 20; s++) CHECK(mpidata_plan_trainer(&five, s, 5) == before[s][5]);
            mpidata_plan_free(&five);
            five = (mpidata_plan){.trainers = 5, .trainer_spares = 2, .samples_run = 1, .simulations = 20};
            CHECK(!mpidata_plan_change_by(&five, codes[0]) && !mpidata_plan_change_by(&five, codes[1]));
            continue;
        }
        CHECK(!mpidata_plan_change_by(&five, codes[i]) && mpidata_plan_trains(&five, one) == joins);
        for (int t = 0; t < 5; t++) n += mpidata_plan_trains(&five, t);
        for (int s = 0; s < 20; s++)
            for (int step = 0; step < 24; step++) {
                const int now = mpidata_plan_trainer(&five, s, step);
                CHECK(mpidata_plan_trains(&five, now) && (now == before[s][step] || (joins ? now == one : before[s][step] == one)));
                before[s][step] = now;
                counts[now]++;
            }
        for (int t = 0; t < 5; t++)
            if (mpidata_plan_trains(&five, t)) CHECK(counts[t] >= 480 / n - 16 && counts[t] <= 480 / n + 16);
    }
    mpidata_plan_free(&five);
}

/* No trainer gets far less than the others if simulations are one run or a few, as with windows. */
static void try_few_runs(void) {
    static const int deaths[] = {1, 2, 0}, joins[] = {-1 - 3, -1 - 4, -1 - 5, 2}, both[] = {2, -1 - 3, 0, -1 - 4, -1 - 5};
    static const struct { const int *codes; int n, trainers; } cases[] = {{deaths, 3, 4}, {joins, 4, 3}, {both, 5, 3}};
    for (int c = 0; c < 3; c++)
        for (int runs = 1; runs < 6; runs++) {
            const int trainers = cases[c].trainers, spares = c ? 3 : 0;
            mpidata_plan plan = {.trainers = trainers + spares, .trainer_spares = spares, .samples_run = 10, .simulations = 200};
            for (int i = 0; i < cases[c].n; i++) {
                int counts[6] = {0};
                CHECK(!mpidata_plan_change_by(&plan, cases[c].codes[i]));
                for (int s = 0; s < 200; s++)
                    for (int run = 0; run < runs; run++) counts[mpidata_plan_trainer(&plan, s, 10 * run + 3)]++;
                const int equal = 200 * runs / mpidata_plan_training(&plan);
                for (int t = 0; t < plan.trainers; t++)
                    CHECK(mpidata_plan_trains(&plan, t) ? 3 * counts[t] > 2 * equal && 2 * counts[t] < 3 * equal : !counts[t]);
            }
            mpidata_plan_free(&plan);
        }
}

int main(int argc, char **argv) {
    if (argc > 1) return tell(argv[1]);
    mpidata_plan plan;
    CHECK(mpidata_plan_parse(example_plan, &plan) == MPIDATA_SUCCESS);
    CHECK(plan.world == 7 && plan.trainers == 2 && plan.groups == 2 && plan.ranks_per_group == 2 && plan.in_flight == 4);
    CHECK(plan.seed == 7 && plan.simulations == 10 && plan.validation == 3);
    CHECK(plan.policy == MPIDATA_POLICY_RESERVOIR && plan.tail == MPIDATA_TAIL_REPEAT);
    CHECK(plan.capacity == 100 && plan.watermark == 20);
    CHECK(plan.n_parameters == 2 && mpidata_plan_parameter(&plan, "left") == 1);
    CHECK(mpidata_plan_parameter(&plan, "lef") == -1);
    CHECK(plan.n_fields == 3 && mpidata_plan_field(&plan, "cells") == 2 && mpidata_plan_field(&plan, "cell") == -1);
    CHECK(plan.fields[0].elements == 24);
    CHECK(plan.fields[1].elements == 1 && plan.fields[1].ndim == 0);
    CHECK(!strcmp(plan.folder, "/folder with blanks") && !plan.arguments[MPIDATA_ROLE_TRAINER]);
    CHECK(!strcmp(plan.arguments[MPIDATA_ROLE_SOLVER][1], "--fast mode") && !plan.arguments[MPIDATA_ROLE_SOLVER][2]);
    CHECK(plan.fields[2].elements == 24 && plan.slot_bytes == 256);

    int index, rank_in_group;
    CHECK(mpidata_plan_role(&plan, 0, &index, &rank_in_group) == MPIDATA_ROLE_SCHEDULER);
    CHECK(mpidata_plan_role(&plan, 2, &index, &rank_in_group) == MPIDATA_ROLE_TRAINER && index == 1);
    CHECK(mpidata_plan_role(&plan, 6, &index, &rank_in_group) == MPIDATA_ROLE_SOLVER && index == 1 && rank_in_group == 1);
    CHECK(mpidata_plan_world_groups(&plan) == plan.groups);
    CHECK(mpidata_plan_trainer(&plan, 3, 4) == 1 && mpidata_plan_trainer(&plan, 3, 5) == 0);
    mpidata_plan_free(&plan);

    try_loaders();
    try_lost_trainers();
    try_trainers_that_join();
    try_few_runs();
    try_validation_when_one_joins();

    refuse("");
    refuse("mpidata-plan 2\n");
    replace("world 7", "world 8");
    replace("in_flight 4", "in_flight 0");
    replace("capacity 100", "capacity many");
    replace("policy reservoir", "policy lifo");
    replace("float32 2 4 6", "float128 2 4 6");
    replace("float32 2 4 6", "float32 2 4");
    replace("float32 2 4 6", "float32 2 4 0");
    replace("float32 2 4 6", "float32 2 4 6 8");
    replace("float32 2 4 6", "float32 7 1 1 1 1 1 1 1");
    replace("float32 2 4 6", "float32 2 65536 65536");
    replace("run /run", "run /run\nrun /other");
    replace("run /run\n", "");
    replace("seed 7", "timeout_s 5 s");
    replace("seed 7", "timeout_s inf");
    replace("seed 7", "start_timeout_s 0");
    refuse_counts("3", "2", "65536", "65536");
    refuse_counts("2147483647", "2147483647", "1", "1");
    refuse_counts("2147483647", "2147483647", "2147483647", "2147483647");
    return 0;
}
