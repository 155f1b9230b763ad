#include <string.h>

#include "check.h"
#include "example_plan.h"
#include "wire/plan.h"

static void refuse(const char *text) {
    mpidata_plan plan;
    CHECK(mpidata_plan_parse(text, &plan) == MPIDATA_ERR_JOB);
    CHECK(plan.fields == NULL && plan.parameters == NULL);
}

/* Counts whose product an int cannot hold; modulo 2^32 the first would do. */
static void refuse_counts(const char *world, const char *trainers, const char *groups, const char *ranks_per_group) {
    char text[512];
    (void)snprintf(text, sizeof text,
                   "mpidata-plan 1\nrun /run\nfolder /folder\nworld %s\ntrainers %s\ngroups %s\nranks_per_group %s\n"
                   "window 1\nsimulations 1\ncapacity 1\nfield u float32 0\n",
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

/* What tests/unit/run/test_plan_readers.py compares: the sentence on the plan in a file, or the places of its ranks. */
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

int main(int argc, char **argv) {
    if (argc > 1) return tell(argv[1]);
    mpidata_plan plan;
    CHECK(mpidata_plan_parse(example_plan, &plan) == MPIDATA_SUCCESS);
    CHECK(plan.world == 7 && plan.trainers == 2 && plan.groups == 2 && plan.ranks_per_group == 2 && plan.window == 4);
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

    refuse("");
    refuse("mpidata-plan 2\n");
    replace("world 7", "world 8");
    replace("window 4", "window 0");
    replace("capacity 100", "capacity many");
    replace("policy reservoir", "policy lifo");
    replace("float32 2 4 6", "float16 2 4 6");
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
