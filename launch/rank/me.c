/* This rank, which the other parts read: it depends on none of them. */
#include "rank.h"

const char *const ROLES[N_ROLES] = {"scheduler", "trainer", "solver"};
rank_t me = {.rank = -1};
