/* A plan that the tests share, with 2 trainers and 2 groups of 2; and an addition of 2 loaders and a spare loader. */
#ifndef EXAMPLE_PLAN_H
#define EXAMPLE_PLAN_H

static const char example_plan[] =
    "mpidata-plan 1\nrun /run\nfolder /folder with blanks\nseed 7\nworld 7\ntrainers 2\ngroups 2\nranks_per_group 2\n"
    "in_flight 4\nsimulations 10\nvalidation 3\npolicy reservoir\ncapacity 100\nwatermark 20\ntail repeat\n"
    "parameter alpha\nparameter left\nfield temperature float32 2 4 6\nfield pressure float64 0\n"
    "field cells uint8 3 2 3 4\nprogram solver\nargument ./solver\nargument --fast mode\n";

static const char example_loaders[] =
    "loaders 2\nloader_spares 1\nloader_start split\nloader_timeout_s 60\nloader_start_timeout_s 600\n"
    "program loader\nargument python\n";

#endif
